"use strict";
// Shows /openapi.json as a page: operations by tag, parameters, bodies, answers, schemas. No network beyond this server.
(() => {
  const METHODS = ["get", "post", "put", "patch", "delete", "head", "options"];
  const redoc = location.pathname.endsWith("/redoc");
  let description = {};

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  };

  const follow = (value) => {
    if (!value || !value.$ref) return value;
    return value.$ref.replace(/^#\//, "").split("/").reduce((part, key) => part && part[key.replace(/~1/g, "/").replace(/~0/g, "~")], description);
  };

  const nameOf = (reference) => reference.split("/").pop();

  const typeText = (schema) => {
    if (!schema) return make("span", {}, "any");
    if (schema.$ref) return make("a", { href: `#schema-${nameOf(schema.$ref)}` }, nameOf(schema.$ref));
    for (const key of ["anyOf", "oneOf", "allOf"]) {
      if (schema[key]) {
        const parts = schema[key].flatMap((part, index) => (index ? [key === "allOf" ? " & " : " | ", typeText(part)] : [typeText(part)]));
        return make("span", {}, ...parts);
      }
    }
    if (schema.type === "array") return make("span", {}, "list of ", typeText(schema.items));
    const facts = [schema.type || (schema.const !== undefined ? JSON.stringify(schema.const) : "any")];
    if (schema.format) facts.push(schema.format);
    if (schema.enum) facts.push(schema.enum.map((value) => JSON.stringify(value)).join(" | "));
    for (const limit of ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"]) {
      if (schema[limit] !== undefined) facts.push(`${limit} ${schema[limit]}`);
    }
    return make("span", {}, facts.join(", "));
  };

  const table = (heads, rows) => make("table", {},
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell ?? ""))))));

  const schemaView = (schema) => {
    const resolved = follow(schema) || {};
    if (!resolved.properties) return make("p", {}, typeText(schema));
    const needed = new Set(resolved.required || []);
    const rows = Object.entries(resolved.properties).map(([name, property]) => [
      make("code", {}, name), typeText(property), needed.has(name) ? "yes" : "", property.description || "",
    ]);
    return table(["name", "type", "required", "meaning"], rows);
  };

  const exampleViews = (content) => {
    const found = [];
    if (content.example !== undefined) found.push(["Example", content.example]);
    for (const [name, example] of Object.entries(content.examples || {})) found.push([`Example: ${name}`, (follow(example) || {}).value]);
    const schema = follow(content.schema) || {};
    if (!found.length) for (const example of schema.examples || []) found.push(["Example", example]);
    return found.map(([title, value]) => make("details", {}, make("summary", {}, title),
      make("div", { class: "body" }, make("pre", { tabindex: "0" }, JSON.stringify(value, null, 2)))));
  };

  const contentView = (contents) => Object.entries(contents || {}).flatMap(([media, content]) => [
    make("p", {}, make("code", {}, media), " ", content.schema ? typeText(content.schema) : null), ...exampleViews(content),
  ]);

  const operationView = (path, method, operation, shared) => {
    const body = make("div", { class: "body" });
    if (operation.description) body.append(make("p", {}, operation.description));
    const parameters = [...(shared || []), ...(operation.parameters || [])].map(follow);
    if (parameters.length) {
      body.append(make("h3", {}, "Parameters"), table(["name", "in", "type", "required", "meaning"], parameters.map((parameter) => [
        make("code", {}, parameter.name), parameter.in, typeText(parameter.schema), parameter.required ? "yes" : "", parameter.description || "",
      ])));
    }
    const request = follow(operation.requestBody);
    if (request) {
      body.append(make("h3", {}, "Body"), ...contentView(request.content));
      const first = Object.values(request.content || {})[0];
      if (first && first.schema) body.append(schemaView(first.schema));
    }
    body.append(make("h3", {}, "Answers"));
    for (const [status, answer] of Object.entries(operation.responses || {})) {
      const resolved = follow(answer);
      body.append(make("p", {}, make("strong", {}, status), ` ${resolved.description || ""}`), ...contentView(resolved.content));
    }
    const view = make("details", { "data-words": `${method} ${path} ${operation.summary || ""} ${operation.description || ""}`.toLowerCase() },
      make("summary", {}, make("span", { class: "method" }, method.toUpperCase()), make("span", { class: "path" }, path), " ",
        make("span", { class: "muted" }, operation.summary || "")), body);
    view.open = redoc;
    return view;
  };

  const show = () => {
    const info = description.info || {};
    document.getElementById("about").textContent = `${info.description || ""} Version ${info.version || "?"}`.trim();
    const groups = new Map();
    for (const [path, item] of Object.entries(description.paths || {})) {
      for (const method of METHODS.filter((name) => item[name])) {
        const tag = (item[method].tags || ["Operations"])[0];
        if (!groups.has(tag)) groups.set(tag, []);
        groups.get(tag).push(operationView(path, method, item[method], item.parameters));
      }
    }
    const content = document.getElementById("content");
    for (const [tag, views] of groups) content.append(make("section", {}, make("h2", {}, tag), ...views));
    const schemas = Object.entries((description.components || {}).schemas || {});
    if (schemas.length) {
      content.append(make("section", {}, make("h2", {}, "Schemas"), ...schemas.map(([name, schema]) => {
        const view = make("details", { id: `schema-${name}`, "data-words": name.toLowerCase() }, make("summary", {}, make("code", {}, name)),
          make("div", { class: "body" }, schema.description ? make("p", {}, schema.description) : null, schemaView(schema)));
        view.open = redoc;
        return view;
      })));
    }
    content.setAttribute("aria-busy", "false");
  };

  const openTarget = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
  };

  document.getElementById("filter").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const view of document.querySelectorAll("[data-words]")) view.hidden = !words.every((word) => view.dataset.words.includes(word));
  });
  window.addEventListener("hashchange", openTarget);

  fetch("openapi.json").then((answer) => {
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  }).then((loaded) => { description = loaded; show(); openTarget(); }).catch((error) => {
    document.getElementById("about").textContent = `The API description could not be loaded (${error.message}).`;
  });
})();

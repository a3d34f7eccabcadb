// Loads a documentation page as a browser would, as far as its script asks: an address is given, JSON comes out with
// what was fetched, what is shown, and what is left when the filter is used.
import vm from "node:vm";

const address = process.argv[2];
const word = process.argv[3];
const fetched = [];

const get = async (url) => {
  const whole = new URL(url, address).href;
  fetched.push(whole);
  return fetch(whole);
};

class Element {
  constructor(name) {
    Object.assign(this, { tagName: name.toUpperCase(), children: [], attributes: {}, dataset: {}, hidden: false, open: false, listeners: {} });
  }
  setAttribute(key, value) {
    this.attributes[key] = String(value);
    if (key.startsWith("data-")) this.dataset[key.slice(5)] = String(value);
  }
  append(...children) { this.children.push(...children); }
  addEventListener(kind, listener) { this.listeners[kind] = listener; }
  scrollIntoView() {}
  set textContent(text) { this.children = [text]; }
  get textContent() { return this.children.map((child) => child.textContent ?? String(child)).join(""); }
  *all() { yield this; for (const child of this.children) if (child instanceof Element) yield* child.all(); }
}

const page = await (await get(address)).text();
const references = [...page.matchAll(/(?:href|src)="([^"]+)"/g)].map((match) => match[1]);
const root = new Element("body");
for (const [, name, id] of page.matchAll(/<(\w+)[^>]*\bid="([^"]+)"/g)) {
  const element = new Element(name);
  element.setAttribute("id", id);
  root.append(element);
}
const document = {
  createElement: (name) => new Element(name),
  getElementById: (id) => [...root.all()].find((element) => element.attributes.id === id) ?? null,
  querySelectorAll: () => [...root.all()].filter((element) => "words" in element.dataset),
};
const sources = references.filter((reference) => reference.endsWith(".js"));
const window = { addEventListener() {} };
const context = vm.createContext({ document, window, fetch: get, location: new URL(address), Error });
for (const source of sources) vm.runInContext(await (await get(source)).text(), context, { filename: source });

const content = document.getElementById("content");
for (let turn = 0; content.attributes["aria-busy"] !== "false" && turn < 500; turn += 1) await new Promise((done) => setTimeout(done, 20));

const views = document.querySelectorAll();
const operations = views.filter((view) => !view.attributes.id).map((view) => view.children[0].textContent);
const schemas = views.filter((view) => view.attributes.id).map((view) => view.attributes.id);
document.getElementById("filter").listeners.input({ target: { value: word } });
const left = views.filter((view) => !view.hidden).length;
console.log(JSON.stringify({
  fetched, references, operations, schemas, left, all: views.length,
  about: document.getElementById("about").textContent, shown: content.textContent.length,
}));

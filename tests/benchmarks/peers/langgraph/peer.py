"""LangGraph's side of the comparison, in an environment of its own: one approved tool round per line of the input.

A line is the call to make, ``{"url", "token", "body"}``; the answer is a line of JSON, ``{"seconds": float}``: from the
resumption behind the approval up to the stored answer of the model.
"""

import http.client
import json
import sys
import time
import uuid
from importlib.metadata import version
from urllib.parse import urlsplit

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


class Calls:
    """Sends calls over one connection, opened before the clock runs."""

    def __init__(self):
        self._connection = None

    def connect(self, url):
        """Open it anew; the server closes one that was quiet for some seconds."""
        if self._connection is not None:
            self._connection.close()
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        self._connection.connect()

    def send(self, call):
        """Status and JSON of the answer of one call."""
        headers = {"Authorization": f"Bearer {call['token']}", "Content-Type": "application/json"}
        self._connection.request("POST", urlsplit(call["url"]).path, call["body"], headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())


CALLS = Calls()


@tool
def update_content_element(uid: int, header: str, config: RunnableConfig) -> str:
    """Change the header of a content element."""
    status, result = CALLS.send(config["configurable"]["call"])
    if status != 200 or result.get("outcome") != "committed":
        raise RuntimeError(f"not carried out: {status} {result}")
    return f"Element {uid} was changed."


def model(state):
    """What a model would answer: one call, then a sentence."""
    last = state["messages"][-1]
    if isinstance(last, ToolMessage):
        return {"messages": [AIMessage("The header was set.")]}
    asked = {"name": "update_content_element", "args": {"uid": 1, "header": last.content}, "id": str(uuid.uuid4())}
    return {"messages": [AIMessage("", tool_calls=[asked])]}


def graph(saver):
    """Model, tool, model; it stops before the tool, for the approval."""
    made = StateGraph(MessagesState)
    made.add_node("model", model)
    made.add_node("tools", ToolNode([update_content_element]))
    made.add_edge(START, "model")
    made.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
    made.add_edge("tools", "model")
    return made.compile(checkpointer=saver, interrupt_before=["tools"])


def one_round(agent, call):
    """Seconds of one round."""
    config = {"configurable": {"thread_id": str(uuid.uuid4()), "call": call}}
    agent.invoke({"messages": [HumanMessage("Set the header")]}, config, durability="sync")
    CALLS.connect(call["url"])
    begin = time.perf_counter()
    state = agent.invoke(None, config, durability="sync")
    seconds = time.perf_counter() - begin
    if state["messages"][-1].content != "The header was set.":
        raise RuntimeError(f"the round did not end: {state['messages'][-1]}")
    return seconds


def serve(url):
    """Answer until the input ends."""
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        agent = graph(saver)
        print(json.dumps({"ready": version("langgraph")}), flush=True)
        for line in sys.stdin:
            print(json.dumps({"seconds": one_round(agent, json.loads(line))}), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])

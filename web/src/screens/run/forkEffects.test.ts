import { expect, test } from "vitest";
import type { GraphDocument } from "@/api/types";
import { forkEffects } from "./forkEffects";

const edge = (source: string, target: string, channel = "flow") => ({
  source,
  target,
  data: { channel },
});
const node = (id: string, type: string, name = id) => ({ id, type, name, data: {} });
const GRAPH: GraphDocument = {
  nodes: [
    node("read", "fetch"),
    node("lead", "agent"),
    node("clerk", "agent"),
    node("mail", "tool", "Send a mail"),
    node("ticket", "http_tool"),
    node("publish", "fetch"),
  ],
  edges: [
    edge("read", "lead"),
    edge("mail", "clerk", "link"),
    edge("clerk", "lead", "link"),
    edge("ticket", "lead", "link"),
    edge("lead", "publish"),
  ],
};
const EFFECTS = [
  { node: "mail", type: "tool", effect: "once" },
  { node: "ticket", type: "http_tool", effect: "write" },
  { node: "publish", type: "fetch", effect: "write" },
] as const;

test("tools of agents that run again act, those of agents that they call too", () => {
  expect(forkEffects(GRAPH, EFFECTS, "rerun", "lead")).toEqual([
    { node: "mail", name: "Send a mail", effect: "once" },
    { node: "ticket", name: "ticket", effect: "write" },
    { node: "publish", name: "publish", effect: "write" },
  ]);
});

test("what is reused acts not", () => {
  expect(forkEffects(GRAPH, EFFECTS, "rerun", "publish").map((each) => each.node)).toEqual([
    "publish",
  ]);
  expect(forkEffects(GRAPH, EFFECTS, "output", "lead").map((each) => each.node)).toEqual([
    "publish",
  ]);
});

test("a changed tool runs the agents again that use it", () => {
  expect(forkEffects(GRAPH, EFFECTS, "settings", "ticket").map((each) => each.node)).toEqual([
    "mail",
    "ticket",
    "publish",
  ]);
});

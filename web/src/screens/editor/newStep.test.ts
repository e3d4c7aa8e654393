import { expect, test } from "vitest";
import type { GraphDocument, NodeTypeResponse, PortResponse } from "@/api/types";
import { takesWire, withNewStep } from "./newStep";
import { portLookup } from "./ports";

const port = (name: string, more: Partial<PortResponse> = {}): PortResponse => ({
  name,
  label: name,
  type: "any",
  channel: "flow",
  multiple: true,
  required: false,
  side: "left",
  color: "",
  shape: "circle",
  ...more,
});
const link = (name: string, type: string) => port(name, { channel: "link", type, side: "bottom" });
const nodeType = (node_type: string, inputs: PortResponse[], outputs: PortResponse[]) =>
  ({ node_type, inputs, outputs }) as unknown as NodeTypeResponse;

const TYPES = [
  nodeType("start", [], [port("output")]),
  nodeType(
    "agent",
    [port("prompt", { side: "bottom" }), port("input"), link("tools", "tool")],
    [port("error"), port("output"), link("tools-out", "tool")],
  ),
  nodeType("tool", [], [link("tools", "tool")]),
  nodeType("model", [], [link("output", "model")]),
  nodeType("switch", [port("input")], [port("case-{i}"), port("default")]),
  nodeType("end", [port("input")], []),
];
const portsOf = portLookup({ node_types: TYPES, socket_types: [] } as never, undefined);
const typeOf = (name: string) =>
  TYPES.find((each) => each.node_type === name) ?? nodeType(name, [], []);

/** Adds a step to a graph of one step, and returns its edges as words. */
function wires(selected: string, added: string, more = {}): string[] {
  const graph: GraphDocument = { nodes: [{ id: "old", type: selected }], edges: [] };
  const made = withNewStep(graph, typeOf(added), { node: "old", ...more }, portsOf);
  return made.graph.edges.map(
    ({ source, sourceHandle, target, targetHandle }) =>
      `${source}.${sourceHandle} ${target}.${targetHandle}`,
  );
}

test.each([
  ["start", "agent", ["old.output agent.input"]],
  ["agent", "end", ["old.output end.input"]],
  ["switch", "agent", ["old.default agent.input"]],
  ["agent", "tool", ["tool.tools old.tools"]],
  ["start", "tool", []],
  ["agent", "model", []],
  ["end", "agent", []],
  ["agent", "start", []],
])("with %s selected, a new %s is connected so: %j", (selected, added, expected) => {
  expect(wires(selected, added)).toEqual(expected);
});

test("a wire that was drawn from a port ends at the new step, or begins there", () => {
  const from = (side: string, each: PortResponse) => ({ side, port: each });
  expect(wires("agent", "end", from("source", port("error")))).toEqual(["old.error end.input"]);
  expect(wires("agent", "start", from("target", port("input")))).toEqual([
    "start.output old.input",
  ]);
  expect(wires("agent", "tool", from("target", link("tools", "tool")))).toEqual([
    "tool.tools old.tools",
  ]);
  expect(wires("agent", "model", from("target", link("tools", "tool")))).toEqual([]);
});

test("the types are offered that a wire can end at", () => {
  const offered = (side: "source" | "target", each: PortResponse) =>
    TYPES.filter((type) => takesWire(type, { node: "old", side, port: each })).map(
      ({ node_type }) => node_type,
    );
  expect(offered("source", port("output"))).toEqual(["agent", "switch", "end"]);
  expect(offered("target", link("tools", "tool"))).toEqual(["agent", "tool"]);
});

test("without a step before it, a new step stands alone", () => {
  const { graph, id } = withNewStep({ nodes: [], edges: [] }, typeOf("agent"), null, portsOf);
  expect([graph.nodes.map((node) => node.id), graph.edges, id]).toEqual([["agent"], [], "agent"]);
});

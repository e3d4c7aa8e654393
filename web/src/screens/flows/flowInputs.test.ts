import { expect, test } from "vitest";
import type { NodeTypeResponse } from "@/api/types";
import { FIRST_GRAPH } from "@/screens/editor/graphEdits";
import { executionInputs, flowFile, inputKey, inputsOf, readFlowFile, textsOf } from "./flowInputs";

const type = (node_type: string, entry: boolean, outputs: [string, string, string][]) =>
  ({
    node_type,
    entry,
    outputs: outputs.map(([name, kind, label]) => ({ name, type: kind, label })),
  }) as NodeTypeResponse;
const TYPES = [
  type("start", true, [["output", "any", "Data"]]),
  type("user_input", true, [
    ["output", "json", "Data"],
    ["message", "text", "Message"],
    ["files", "json", "Files"],
  ]),
  type("agent", false, [["output", "text", "Data"]]),
];
const edge = (source: string, sourceHandle: string, channel = "flow") => ({
  source,
  sourceHandle,
  target: "agent",
  data: { channel },
});

test("a flow with one start takes one text", () => {
  const inputs = inputsOf(FIRST_GRAPH, TYPES);
  expect(inputs).toEqual([
    { node: "start", handle: "output", label: "Start", type: "any", usual: "" },
  ]);
  const [input] = inputs;
  const texts = { [input ? inputKey(input) : ""]: "3" };
  expect(executionInputs(inputs, texts)).toEqual({ start: { output: "3" } });
  expect(executionInputs(inputs, {})).toEqual({});
});

test("only outputs that other steps read are asked for, each as its type", () => {
  const graph = {
    nodes: [
      { id: "form", type: "user_input", data: { message: "Hello" } },
      { id: "agent", type: "agent" },
    ],
    edges: [edge("form", "message"), edge("form", "files"), edge("form", "output", "link")],
  };
  const inputs = inputsOf(graph, TYPES);
  expect(inputs.map(({ label, usual }) => [label, usual])).toEqual([
    ["form, Message", "Hello"],
    ["form, Files", ""],
  ]);
  const [message, files] = inputs.map(inputKey);
  expect(executionInputs(inputs, { [message ?? ""]: "[1]", [files ?? ""]: "[1]" })).toEqual({
    form: { message: "[1]", files: [1] },
  });
});

test("saved inputs come back into the form, by fields and by nodes", () => {
  const schema = { type: "object", properties: { city: { type: "string" }, days: {} } };
  const graph = {
    nodes: [
      { id: "start", type: "start", data: { schema } },
      { id: "form", type: "user_input" },
    ],
    edges: [edge("form", "files")],
  };
  const inputs = inputsOf(graph, TYPES);
  const [start, files] = inputs.map(inputKey);
  expect(textsOf(inputs, { city: "Porto", gone: 1 })).toEqual({
    [start ?? ""]: '{"city":"Porto"}',
  });
  const saved = { start: { output: { city: "Porto" } }, form: { files: "7" } };
  const texts = textsOf(inputs, saved);
  expect(texts[files ?? ""]).toBe('"7"');
  expect(executionInputs(inputs, texts)).toEqual(saved);
  expect(textsOf(inputs, {})).toEqual({});
});

test("a flow comes back from its file; a plan alone is taken too", () => {
  const flow = {
    plan_id: "f1",
    name: "Note",
    description: "Writes notes",
    title: "A note",
    hash: "v",
    revision: 3,
    live_revision: 3,
    draft: null,
    inputs: null,
    created_at: "",
    updated_at: "",
    published: [],
    graph: FIRST_GRAPH,
  };
  const { name, description, graph } = flow;
  expect(readFlowFile(flowFile(flow), "x.json")).toEqual({ name, description, graph });
  expect(readFlowFile(JSON.stringify(FIRST_GRAPH), "my flow.json").name).toBe("my flow");
  expect(() => readFlowFile('{"graph": {"nodes": []}}', "x.json")).toThrow("x.json has no flow");
  expect(() => readFlowFile("null", "x.json")).toThrow("x.json has no flow");
});

import { expect, test } from "vitest";
import { stepAlone } from "./stepAlone";

const edge = (source: string, target: string, channel = "flow") => ({
  source,
  target,
  data: { channel },
});
const GRAPH = {
  nodes: ["city", "a", "b", "c", "tool", "after"].map((id) => ({
    id,
    type: id === "city" ? "start" : "agent",
  })),
  edges: [edge("a", "b"), edge("b", "c"), edge("tool", "c", "link"), edge("c", "after")],
};
const OUTPUTS: Record<string, object> = {
  city: { output: { type: "json", value: { city: "Porto" } } },
  a: { output: { type: "text", value: "A" } },
  b: { output: { type: "text", value: "B" }, error: { type: "any", value: null } },
};

test("a step runs alone on what the steps before it gave, with the inputs of the flow", async () => {
  const read = async (id: string) => (OUTPUTS[id] ? { outputs: { ...OUTPUTS[id] } } : null);
  expect(await stepAlone(GRAPH, "c", read)).toEqual({
    inputs: {
      city: { output: { city: "Porto" } },
      a: { output: "A" },
      b: { output: "B", error: null },
    },
    options: { run_to: ["c"] },
  });
});

test("steps that gave nothing before are not settled", async () => {
  expect(await stepAlone(GRAPH, "c", async () => null)).toEqual({
    inputs: {},
    options: { run_to: ["c"] },
  });
});

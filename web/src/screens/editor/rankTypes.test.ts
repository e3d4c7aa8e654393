import { expect, test } from "vitest";
import type { NodeTypeResponse } from "@/api/types";
import { rankTypes } from "./rankTypes";

const type = (node_type: string, summary = "", purpose = "") =>
  ({ node_type, summary, purpose }) as NodeTypeResponse;

const TYPES = [
  type("agent", "Asks a model", "reads text and gives text"),
  type("chat_start", "Begins with a message"),
  type("conditional", "If a template says so"),
  type("flow_tool", "A flow as a tool"),
  type("if", "Chooses a branch"),
  type("own_thing", "Made by you"),
  type("start", "Begins the flow"),
  type("text", "Gives a fixed text"),
  type("tool", "Gives an agent a tool"),
];

test.each(["start", "if", "text", "tool"])(
  "the first match of %s is the type of that name",
  (name) => {
    expect(rankTypes(TYPES, name)[0]?.types[0]?.node_type).toBe(name);
  },
);

test("every word has to fit, and nothing that fits is left out", () => {
  expect(rankTypes(TYPES, "flow begins")[0]?.types.map((each) => each.node_type)).toEqual([
    "start",
  ]);
  expect(rankTypes(TYPES, "xyz")).toEqual([]);
});

test("without words all types stand in groups, also those of nobody's making", () => {
  const groups = rankTypes(TYPES, " ");
  expect(groups.flatMap((group) => group.types)).toHaveLength(TYPES.length);
  expect(groups[0]).toEqual({ label: "Ask a model", types: [TYPES[0]] });
  expect(groups.at(-1)).toEqual({ label: "Other", types: [TYPES[5]] });
});

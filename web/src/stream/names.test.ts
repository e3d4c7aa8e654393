import { expect, test } from "vitest";
import { withNames } from "@/stream/names";
import { newNodeState } from "@/stream/runState";

test("steps are called by their names, and nothing else is changed", () => {
  const nodes = new Map([
    ["b", { ...newNodeState("b"), name: "Book hotels" }],
    ["c", newNodeState("c")],
  ]);
  expect(withNames(nodes, "node 'b' failed: 'x' is no city; 'c' and 'b' wait")).toBe(
    "node “Book hotels” failed: 'x' is no city; 'c' and “Book hotels” wait",
  );
});

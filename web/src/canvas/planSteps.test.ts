import { expect, test } from "vitest";
import type { GraphDocument } from "@/api/types";
import { planChangeWords, planSteps } from "./planSteps";

const text = (id: string, words: string, ui?: Record<string, unknown>) => ({
  id,
  type: "text",
  data: { text: words },
  ...(ui && { ui }),
});
const BEFORE: GraphDocument = {
  nodes: [text("a", "A"), text("b", "B"), text("c", "C")],
  edges: [],
};

test("a step is kept, changed, dropped or new; where it stands does not count", () => {
  const place = { position: { x: 1, y: 2 } };
  const after = { ...BEFORE, nodes: [text("a", "A", place), text("c", "other"), text("d", "D")] };
  const steps = planSteps(BEFORE, after);
  expect(steps.map(({ node, change }) => [node.id, change])).toEqual([
    ["a", "same"],
    ["b", "only_a"],
    ["c", "changed"],
    ["d", "only_b"],
  ]);
  expect(steps[2]?.node.data).toEqual({ text: "other" });
  expect(planChangeWords(steps)).toBe("1 new, 1 changed, 1 dropped");
});

test("of a plan that only connects its steps otherwise nothing is said of them", () => {
  expect(planChangeWords(planSteps(BEFORE, BEFORE))).toBe("");
});

import { expect, test } from "vitest";
import type { PlanStreamEvent } from "@/api/types";
import { foldPlanEvent, startOf } from "@/screens/goal/planWriting";
import { draftOf } from "@/screens/goal/useEditByHand";

function written(...events: PlanStreamEvent[]) {
  return events.reduce(foldPlanEvent, startOf({ prompt: "Compare three stores" }));
}

test("a draft has the goal, the steps with who runs them, and the edges", () => {
  const draft = draftOf(
    written(
      { event: "title", data: { title: "Stores" } },
      { event: "node", data: { id: "a", name: "Name", description: "Name 3.", model: "small" } },
      { event: "node", data: { id: "b", type: "join" } },
      { event: "edge", data: { source: "a", target: "b", channel: "flow" } },
    ),
  );
  expect(draft).toMatchObject({
    name: "Stores",
    description: "Compare three stores",
    draft: true,
    graph: { title: "Stores", user_prompt: "Compare three stores" },
  });
  expect(draft.graph?.nodes).toEqual([
    { id: "a", type: "agent", name: "Name", description: "Name 3.", data: { model: "small" } },
    { id: "b", type: "join", name: "b", description: "", data: {} },
  ]);
  expect(draft.graph?.edges).toEqual([{ source: "a", target: "b", data: { channel: "flow" } }]);
});

test("what no graph can hold is left out: an id for the second time, an edge to no step", () => {
  const { graph, name } = draftOf(
    written(
      { event: "node", data: { id: "a", name: "First" } },
      { event: "node", data: { id: "a", name: "Second" } },
      { event: "edge", data: { source: "a", target: "gone" } },
    ),
  );
  expect(graph?.nodes.map((node) => node.name)).toEqual(["Second"]);
  expect(graph?.edges).toEqual([]);
  expect(name).toBe("Compare three stores");
});

import { expect, test } from "vitest";
import type { PlanStreamEvent } from "@/api/types";
import { foldPlanEvent, type PlanWriting } from "@/screens/goal/planWriting";

const START: PlanWriting = {
  request: { prompt: "Compare three stores" },
  startedAt: 0,
  title: null,
  steps: [],
  edges: [],
  text: "",
  reasoning: "",
  repair: null,
  names: new Map(),
  plan: null,
  error: null,
};

function fold(...events: PlanStreamEvent[]): PlanWriting {
  return events.reduce(foldPlanEvent, START);
}

test("steps and edges appear one after the other, under the title", () => {
  const writing = fold(
    { event: "title", data: { title: "Stores" } },
    { event: "node", data: { id: "a", name: "Name stores", type: "agent" } },
    { event: "node", data: { id: "b" } },
    { event: "edge", data: { source: "a", target: "b", channel: "flow" } },
    { event: "edge", data: { source: "a" } },
  );
  expect(writing.title).toBe("Stores");
  expect(writing.steps.map(({ id, name }) => [id, name])).toEqual([
    ["a", "Name stores"],
    ["b", "b"],
  ]);
  expect(writing.edges).toEqual([{ source: "a", target: "b", isLink: false }]);
});

test("a repair voids what was written and says what is wrong", () => {
  const diagnostics = [
    {
      code: "flow-cycle",
      severity: "error",
      message: "a needs itself",
      pointer: "/edges/0",
    } as never,
  ];
  const writing = fold(
    { event: "delta", data: { text: "{", reasoning: false } },
    { event: "node", data: { id: "a" } },
    { event: "repair", data: { attempt: 2, diagnostics } },
  );
  expect([writing.steps, writing.text]).toEqual([[], ""]);
  expect(writing.names.get("a")).toBe("a");
  expect(writing.repair?.diagnostics[0]?.message).toBe("a needs itself");
});

test("reasoning is no part of the reply, and only its end is kept", () => {
  const writing = fold(
    { event: "delta", data: { text: "x".repeat(400), reasoning: true } },
    { event: "delta", data: { text: "{}", reasoning: false } },
  );
  expect(writing.text).toBe("{}");
  expect(writing.reasoning).toHaveLength(300);
});

import { expect, test } from "vitest";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { newRunState } from "@/stream/runState";
import { timelineRows } from "./timelineRows";

const { events } = goldenRuns().find(({ name }) => name.startsWith("agents.json")) ?? {
  events: [],
};
const NOW = Date.UTC(2026, 0, 1, 1);

test("the calls of an agent stand below it by start, with what runs inside them", () => {
  const rows = timelineRows(applyEvents(newRunState("x"), events), new Map(), NOW);
  expect(rows.map(({ depth, name, status, label }) => [depth, name, status, label])).toEqual([
    [0, "lead", "completed", "waited 8.0 s"],
    [1, "look", "completed", "1.0 s"],
    [1, "Clerk", "completed", "1.5 s"],
    [2, "look", "completed", "1.0 s"],
    [1, "send", "completed", "1.0 s"],
    [1, "send", "cancelled", "rejected"],
    [1, "look", "completed", "1.0 s"],
  ]);
  const clerk = rows[2]?.path;
  expect(rows.slice(1, 5).map(({ opens }) => opens)).toEqual(["lead", undefined, clerk, "lead"]);
});

test("a call that a person decides about waits first, then works", () => {
  const [sent] = timelineRows(applyEvents(newRunState("x"), events), new Map(), NOW).filter(
    ({ name }) => name === "send",
  );
  expect(sent?.bars.map(({ kind, status }) => [kind, status])).toEqual([
    ["wait", "waiting"],
    ["work", "completed"],
  ]);
});

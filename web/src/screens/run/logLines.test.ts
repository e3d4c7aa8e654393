import { expect, test } from "vitest";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { newRunState } from "@/stream/runState";
import { logLines } from "./logLines";

test("questions about calls are lines of the agent that asks, and no steps of their own", () => {
  const { events } = goldenRuns().find(({ name }) => name.startsWith("agents.json")) ?? {
    events: [],
  };
  const lines = logLines(applyEvents(newRunState("x"), events));
  expect(lines.filter(({ type }) => type === "wait_input").map(({ path }) => path)).toEqual([
    "lead",
    "lead",
  ]);
  expect(lines.filter(({ type }) => type === "input_received").map(({ text }) => text)).toEqual([
    expect.stringMatching(/^about send: /),
    expect.stringMatching(/^about send: /),
  ]);
  expect(lines.filter(({ type }) => type === "step_start").map(({ path }) => path)).toEqual([
    "lead",
    expect.stringMatching(/clerk$/),
  ]);
});

test("the start of a step says its type, and no name twice", () => {
  const { events } = goldenRuns().find(({ name }) => name.startsWith("agents.json")) ?? {
    events: [],
  };
  const starts = logLines(applyEvents(newRunState("x"), events)).filter(
    ({ type }) => type === "step_start",
  );
  expect(new Set(starts.map(({ text }) => text))).toEqual(new Set(["agent"]));
});

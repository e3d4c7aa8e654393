import { describe, expect, it, test } from "vitest";
import type { ExecutionEvent } from "@/api/types";
import { answerWords } from "@/inspector/answerWords";
import { askingPath, callsOfLinked } from "@/stream/calls";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { type NodeState, newRunState, type RunState, type ToolCall } from "@/stream/runState";

const { events } = goldenRuns().find(({ name }) => name.startsWith("agents.json")) ?? {
  events: [],
};

function fold(told: readonly ExecutionEvent[]): RunState {
  return applyEvents(newRunState("x"), told);
}

function node(run: RunState, path: string): NodeState {
  const found = run.nodes.get(path);
  if (!found) throw new Error(`no node ${path}`);
  return found;
}

function untilType(type: string): RunState {
  return fold(events.slice(0, events.findIndex((event) => event.type === type) + 1));
}

function calls(run: RunState, path = "lead"): Record<string, ToolCall> {
  return Object.fromEntries(node(run, path).calls.map((call) => [call.id, call]));
}

describe("the calls of an agent", () => {
  it("are those that its model asked for, with their outcomes", () => {
    const outcomes = node(fold(events), "lead").calls.map(({ id, name, status }) => [
      id,
      name,
      status,
    ]);
    expect(outcomes).toEqual([
      ["c1", "look", "completed"],
      ["c4", "delegate_Clerk", "completed"],
      ["c5", "lock", "failed"],
      ["c2", "send", "completed"],
      ["c3", "send", "rejected"],
      ["c6", "look", "completed"],
    ]);
  });

  it("wait while people are asked about them, several at once", () => {
    const paused = untilType("execution.paused");
    const { c1, c2, c3 } = calls(paused);
    expect(c1?.status).toBe("completed");
    expect([c2, c3].map((call) => [call?.status, call?.arguments])).toEqual([
      ["waiting", { to: "Ada" }],
      ["waiting", { to: "Bob" }],
    ]);
    expect([c2?.requestId, c3?.requestId]).toEqual([...paused.requests.keys()]);
  });

  it("say what a person has changed, and what a person wrote", () => {
    const { c2, c3 } = calls(fold(events));
    expect([c2?.requested, c2?.arguments]).toEqual([{ to: "Ada" }, { to: "Ada Lovelace" }]);
    expect(c3?.error?.message).toContain("Not him.");
    expect(c3?.startedAt).toBeNull();
  });

  it("say who decided about them, and keep an approval apart from the call", () => {
    const { c1, c2, c3 } = calls(fold(events));
    expect(c1?.answered).toBeNull();
    expect([c2, c3].map((call) => answerWords(call?.answered ?? { answer: null }))).toEqual([
      "Approved",
      "Rejected: “Not him.”",
    ]);
    const approved = events.findIndex(({ type }) => type === "node.answered");
    const between = calls(fold(events.slice(0, approved + 1)));
    const decided = [between.c2, between.c3].find((call) => call?.answered);
    expect([decided?.startedAt, decided?.result]).toEqual([null, undefined]);
  });

  it("keep their times where an attempt is entered again and tells their ends once more", () => {
    const before = calls(untilType("node.parked")).c1;
    expect(calls(fold(events)).c1).toEqual(before);
  });

  it("lead to the calls inside another agent", () => {
    const run = fold(events);
    const { c4 } = calls(run);
    const inside = node(run, `${c4?.runPrefix}clerk`);
    expect(inside.calls.map(({ id, parentId, depth }) => [id, parentId, depth])).toEqual([
      ["k1", "c4", 1],
    ]);
  });

  it("are over when their agent is", () => {
    const started = events.findIndex(
      (event) => event.type === "node.event" && event.data.event_type === "tool_call_start",
    );
    const begun = events.slice(0, started + 1);
    const last = begun.at(-1);
    const cancelled = {
      ...last,
      seq: (last?.seq ?? 0) + 1,
      type: "node.cancelled",
      data: { cause: "enough" },
    } as ExecutionEvent;
    expect(calls(fold(begun)).c1?.status).toBe("running");
    expect(calls(fold([...begun, cancelled])).c1?.status).toBe("cancelled");
  });
});

describe("a linked node", () => {
  const used = (id: string) =>
    callsOfLinked(fold(events), node(fold(events), id)).map(({ caller, call }) => [
      caller.name,
      call.id,
    ]);

  it("has the calls of the agents that use it, of those that others call too", () => {
    expect(used("kit")).toEqual([
      ["lead", "c1"],
      ["lead", "c3"],
      ["Clerk", "k1"],
      ["lead", "c2"],
      ["lead", "c6"],
    ]);
    expect(used("clerk")).toEqual([["lead", "c4"]]);
  });
});

test("a question about a call belongs to its agent, any other to its own node", () => {
  const [request] = untilType("execution.paused").requests.values();
  expect(askingPath(request?.path ?? "", request?.request)).toBe("lead");
  expect(askingPath("loop[2]/ask", { prompt: "Good?" })).toBe("loop[2]/ask");
});

test("the log tells calls in words, and each end once", () => {
  const lines = fold(events).log.filter(({ type }) => /_call_/.test(type));
  expect(lines.filter(({ path }) => path === "lead").map(({ type, text }) => [type, text])).toEqual(
    [
      ["tool_call_start", "look: {}"],
      ["tool_call_end", "look: {}"],
      ["subagent_call_start", "delegate_Clerk: Find it."],
      ["tool_call_error", "lock: there is no tool 'lock'. Did you mean 'look'?"],
      ["subagent_call_end", "delegate_Clerk: Found."],
      ["tool_call_start", "send: Ada Lovelace"],
      ["tool_call_end", expect.stringContaining("send: (A person changed the arguments")],
      ["tool_call_error", expect.stringMatching(/^send: a person rejected this call.*Not him\.$/)],
      ["tool_call_start", "look: {}"],
      ["tool_call_end", "look: {}"],
    ],
  );
});

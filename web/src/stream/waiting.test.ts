import { expect, test } from "vitest";
import type { OpenRequestResponse } from "@/api/types";
import { newNodeState, newRunState } from "@/stream/runState";
import { waitingWords } from "@/stream/waiting";

const asked = (path: string | null, request: unknown = { prompt: "Go on?" }) =>
  new Map([
    ["r1", { request_id: "r1", path, request, since: "", timeout_s: null } as OpenRequestResponse],
  ]);

test.each([
  ["its own question", asked("a"), "Waits for an answer."],
  ["a timer", asked("a", { kind: "timer" }), "Waits for a time."],
  ["a question inside", asked("a[0]/b"), "A step inside it waits."],
  ["no question", asked("b"), "Waits until the budget has room, and goes on by itself."],
])("a step with %s says what it waits for", (_, requests, words) => {
  const run = { ...newRunState("x"), requests };
  expect(waitingWords(run, newNodeState("a"))).toBe(words);
});

import { expect, test } from "vitest";
import { newRunState, type RunState } from "@/stream/runState";
import { changeObstacle } from "./changeObstacle";

const STARTED: RunState = { ...newRunState("x"), startedAt: "2026-01-01T00:00:00Z" };

const asks = (kind: string) => ({
  ...{ request_id: "r3", path: null, request: { kind }, since: "", timeout_s: null },
});

test.each<[Partial<RunState>, string | undefined]>([
  [{}, undefined],
  [{ startedAt: null }, "not started"],
  [{ requests: new Map([["r3", asks("plan-approval")]]) }, "waits for an approval"],
  [{ requests: new Map([["r9", asks("plan-change")]]) }, undefined],
  [{ endedAt: "2026-01-01T00:00:01Z" }, "has ended"],
  [{ options: { run_to: ["a"] } as RunState["options"] }, "a part of its plan"],
  [{ options: { run_from: ["a"] } as RunState["options"] }, "a part of its plan"],
])("of a run with %o: %s", (state, words) => {
  const found = changeObstacle({ ...STARTED, ...state });
  if (words === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(words);
});

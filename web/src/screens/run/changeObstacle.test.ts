import { expect, test } from "vitest";
import { newRunState, type RunState } from "@/stream/runState";
import { changeObstacle } from "./changeObstacle";

const STARTED: RunState = { ...newRunState("x"), startedAt: "2026-01-01T00:00:00Z" };

test.each<[Partial<RunState>, object | null, string | undefined]>([
  [{}, null, undefined],
  [{}, { plan_hash: "h", answer: { decision: "approve" } }, "needs an approval"],
  [{ startedAt: null }, { plan_hash: "h" }, "not started"],
  [{ endedAt: "2026-01-01T00:00:01Z" }, null, "has ended"],
  [{ options: { run_to: ["a"] } as RunState["options"] }, null, "a part of its plan"],
  [{ options: { run_from: ["a"] } as RunState["options"] }, null, "a part of its plan"],
])("of a run with %o and the approval %o: %s", (state, approval, words) => {
  const found = changeObstacle({ ...STARTED, ...state }, { approval: approval as never });
  if (words === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(words);
});

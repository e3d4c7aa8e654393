import { fireEvent, screen } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { newRunState, type RunState } from "@/stream/runState";
import { renderRoutes } from "@/testApi";
import { RunActions } from "./RunActions";

const RUN: RunState = {
  ...newRunState("e1"),
  status: "executing",
  startedAt: "2026-01-01T00:00:00Z",
};
const NOTHING = () => undefined;

let kept: number;

beforeEach(() => {
  kept = 0;
  // Where there is room, these stand beside the other buttons.
  const wide = { matches: false, addEventListener: NOTHING, removeEventListener: NOTHING };
  vi.spyOn(window, "matchMedia").mockReturnValue(wide as never);
});

function show(run: Partial<RunState>) {
  const actions = (
    <RunActions
      run={{ ...RUN, ...run }}
      isInterrupted={false}
      onFork={NOTHING}
      onKeep={() => kept++}
      onJson={NOTHING}
      onShare={NOTHING}
    />
  );
  return renderRoutes([{ path: "/", element: actions }]);
}

test("a change of the plan is offered unless the plan itself waits for its approval", async () => {
  const { unmount } = show({});
  expect(screen.getByRole("link", { name: "Change this run …" })).toBeTruthy();
  unmount();
  const request = { kind: "plan-approval", actions: ["approve", "reject"] };
  const asked = { request_id: "r3", path: null, request, since: "", timeout_s: null };
  show({ requests: new Map([["r3", asked]]) });
  expect(screen.queryByRole("link")).toBeNull();
});

const CHANGED = { planId: "p1", revision: 1, changes: [{} as never] };
const FORK = { planId: "p1", parent: {} as never, endedAt: "2026-01-01T00:00:09Z" };
const ENDED = { status: "completed", endedAt: "2026-01-01T00:00:09Z" } as const;

test.each<[string, Partial<RunState>, boolean]>([
  ["a run that was changed and goes on", CHANGED, true],
  ["one that was changed and waits", { ...CHANGED, status: "paused" }, true],
  ["one that was changed and has ended", { ...CHANGED, ...ENDED }, true],
  ["a fork with another graph", { ...FORK, revision: null }, true],
  ["a fork with the graph of a revision", { ...FORK, revision: 2 }, false],
  ["a run as its plan is", { ...CHANGED, changes: [] }, false],
  ["a changed run without a plan", { ...CHANGED, planId: null }, false],
])("its graph can be kept in the plan, or has nothing to keep: %s", (_, run, isOffered) => {
  show(run);
  const button = screen.queryByRole("button", { name: "Keep in the plan" });
  expect(button !== null).toBe(isOffered);
  if (button) fireEvent.click(button);
  expect(kept).toBe(Number(isOffered));
});

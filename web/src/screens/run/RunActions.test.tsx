import { screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { newRunState, type RunState } from "@/stream/runState";
import { renderRoutes } from "@/testApi";
import { RunActions } from "./RunActions";

const RUN: RunState = {
  ...newRunState("e1"),
  status: "executing",
  startedAt: "2026-01-01T00:00:00Z",
};
const NOTHING = () => undefined;

test("a change of the plan is offered unless the plan itself waits for its approval", async () => {
  // Where there is room, it stands beside the other buttons.
  const wide = { matches: false, addEventListener: NOTHING, removeEventListener: NOTHING };
  vi.spyOn(window, "matchMedia").mockReturnValue(wide as never);
  const actions = (run: RunState) => (
    <RunActions
      run={run}
      isInterrupted={false}
      onFork={NOTHING}
      onKeep={NOTHING}
      onJson={NOTHING}
      onShare={NOTHING}
    />
  );
  const { unmount } = renderRoutes([{ path: "/", element: actions(RUN) }]);
  expect(screen.getByRole("link", { name: "Change this run …" })).toBeTruthy();
  unmount();
  const request = { kind: "plan-approval", actions: ["approve", "reject"] };
  const asked = { request_id: "r3", path: null, request, since: "", timeout_s: null };
  const requests = new Map([["r3", asked]]);
  renderRoutes([{ path: "/", element: actions({ ...RUN, requests }) }]);
  expect(screen.queryByRole("link")).toBeNull();
});

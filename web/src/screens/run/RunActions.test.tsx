import { screen, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { queryKeys } from "@/api/queryKeys";
import { newRunState, type RunState } from "@/stream/runState";
import { renderRoutes, startTestApi } from "@/testApi";
import { RunActions } from "./RunActions";

const RUN: RunState = {
  ...newRunState("e1"),
  status: "executing",
  startedAt: "2026-01-01T00:00:00Z",
};
const NOTHING = () => undefined;

test("a change of the plan is offered once it is known that the plan needs no approval", async () => {
  // Where there is room, it stands beside the other buttons.
  const wide = { matches: false, addEventListener: NOTHING, removeEventListener: NOTHING };
  vi.spyOn(window, "matchMedia").mockReturnValue(wide as never);
  const api = await startTestApi({ "GET /api/executions/e1": { approval: null } });
  const actions = (
    <RunActions
      run={RUN}
      isInterrupted={false}
      onFork={NOTHING}
      onKeep={NOTHING}
      onJson={NOTHING}
      onShare={NOTHING}
    />
  );
  const { queries } = renderRoutes([{ path: "/", element: actions }]);
  expect(screen.queryByRole("link")).toBeNull();
  await screen.findByRole("link", { name: "Change this run …" });
  const approval = { plan_hash: "h", answer: { decision: "approve" } };
  queries.setQueryData(queryKeys.execution("e1"), { approval });
  await waitFor(() => expect(screen.queryByRole("link")).toBeNull());
  await api.close();
});

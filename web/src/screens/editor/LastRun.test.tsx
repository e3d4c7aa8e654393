import { fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { Toaster } from "@/ui/Toaster";
import { LastRun } from "./LastRun";

const GRAPH = { nodes: ["a", "b", "after"].map((id) => ({ id, type: "agent" })), edges: [] };
const START = "POST /api/execute";
let api: TestApi;

beforeEach(async () => {
  api = await startTestApi({
    "GET /api/executions": { executions: [], next_cursor: null },
    [START]: { execution_id: "made", status: "starting" },
  });
});

afterEach(() => api.close());

/** A step that has never run, where saving what was changed succeeds or not. */
function show(isSaved: boolean) {
  const Step = () => (
    <>
      <LastRun
        {...{ planId: "p1", graph: GRAPH, id: "b" }}
        flush={async () => isSaved}
        onSelect={() => {}}
      />
      <Toaster />
    </>
  );
  const run = { path: "/runs/:id", Component: () => "The run" };
  return renderRoutes([{ path: "/", Component: Step }, run]).router;
}

const started = () => api.requests.filter(({ route }) => route === START);

test("a step that has not run yet is run with all before it, and its run is opened", async () => {
  const router = show(true);
  await screen.findByText("This step has not run yet.");
  fireEvent.click(screen.getByRole("button", { name: "Run up to here" }));
  await screen.findByText("The run");
  expect(router.state.location.pathname).toBe("/runs/made");
  expect(started().map(({ body }) => JSON.parse(body))).toEqual([
    { plan_id: "p1", start: true, options: { run_to: ["b"] } },
  ]);
});

test("a step whose changes are not saved is not run as it was before them", async () => {
  const router = show(false);
  fireEvent.click(await screen.findByRole("button", { name: "Run up to here" }));
  await screen.findByText("Not started: your last changes are not saved yet.");
  expect(started()).toEqual([]);
  expect(router.state.location.pathname).toBe("/");
});

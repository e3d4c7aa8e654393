import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, test } from "vitest";
import { newRunState } from "@/stream/runState";
import { renderRoutes, startTestApi } from "@/testApi";
import { ForkDialog } from "./ForkDialog";

test("a fork with a change can have another task", async () => {
  const api = await startTestApi({
    "GET /api/node-types": { node_types: [{ node_type: "agent", schema: { properties: {} } }] },
    "POST /api/executions/e1/fork": { execution_id: "e2" },
  });
  const step = { id: "note", type: "agent", description: "Write a note.", data: {} };
  const run = { ...newRunState("e1"), graph: { nodes: [step], edges: [] } };
  const { router } = renderRoutes([
    { path: "/", element: <ForkDialog run={run} path="note" onClose={() => undefined} /> },
    { path: "/runs/:id", element: null },
  ]);
  const task = await screen.findByLabelText("Task");
  expect(task).toHaveProperty("value", "Write a note.");
  fireEvent.change(task, { target: { value: "Write a letter." } });
  fireEvent.click(screen.getByRole("button", { name: "Fork and run" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/runs/e2"));
  const [fork] = api.requests.filter(({ route }) => route.endsWith("/fork"));
  expect(JSON.parse(fork?.body ?? "")).toEqual({
    changes: { note: { description: "Write a letter.", data: {} } },
    start: true,
  });
  await api.close();
});

test("it says which tools act on the world again", async () => {
  const effects = [
    { node: "mail", type: "tool", effect: "once" },
    { node: "ticket", type: "http_tool", effect: "write" },
  ];
  const api = await startTestApi({
    "GET /api/node-types": { node_types: [] },
    "POST /api/check": { forecast: { effects } },
  });
  const nodes = ["lead", "mail", "ticket"].map((id) => ({ id, type: "agent", data: {} }));
  const link = (source: string) => ({ source, target: "lead", data: { channel: "link" } });
  const graph = { nodes, edges: [link("mail"), link("ticket")] };
  renderRoutes([
    {
      path: "/",
      element: <ForkDialog run={{ ...newRunState("e1"), graph }} path={null} onClose={() => {}} />,
    },
  ]);
  await screen.findByText("ticket may change something again.");
  await screen.findByText(/^mail must act only once\. .* you are asked/);
  fireEvent.click(screen.getByText("Give its result"));
  await waitFor(() => expect(screen.queryByText(/act only once/)).toBeNull());
  await api.close();
});

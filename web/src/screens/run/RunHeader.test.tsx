import { screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { newRunState } from "@/stream/runState";
import { renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { RunHeader } from "./RunHeader";

let api: TestApi;
afterEach(() => api.close());

async function show(execution: Record<string, unknown>) {
  api = await startTestApi({ "GET /api/executions/e1": execution });
  const run = { ...newRunState("e1"), title: "Weekly report" };
  const header = <RunHeader run={run} isInterrupted={false} now={0} actions={<p>Actions</p>} />;
  renderRoutes([{ path: "/", element: header }]);
}

test("a run leads to its trace, without telling that page where it was opened", async () => {
  await show({ trace_url: "https://t.example/0af7" });
  const link = await screen.findByRole("link", { name: "trace" });
  expect(link.getAttribute("href")).toBe("https://t.example/0af7");
  expect(link.getAttribute("rel")).toBe("noreferrer noopener");
});

test("a run without a known page of its trace has no such link", async () => {
  await show({});
  expect(await screen.findByRole("heading", { name: "Weekly report" })).toBeTruthy();
  await expect.poll(() => api.requests.length).toBe(1);
  expect(screen.queryByRole("link")).toBeNull();
});

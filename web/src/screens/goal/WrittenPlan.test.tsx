import { screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WrittenPlan } from "@/screens/goal/WrittenPlan";
import { renderRoutes, startTestApi, type TestApi } from "@/testApi";

const PLAN = {
  plan_id: "p1",
  user_prompt: "Compare three stores",
  title: "Which store",
  status: "draft",
  revision: 1,
  hash: "h",
  created_at: "2026-11-23T12:00:00+00:00",
  provider: "openai",
  model: "gpt-small",
  nodes: [{ id: "pick", type: "agent", name: "Pick one", description: "Recommend one." }],
  edges: [],
  diagnostics: [],
  fixes: [],
  questions: [],
  forecast: {},
  examples: [{ plan_id: "p0", title: "Which database" }],
};
let api: TestApi;

beforeEach(async () => {
  api = await startTestApi({
    "GET /api/providers": { providers: ["openai"], default_models: {}, models: {}, details: [] },
    "GET /api/plans/p1": PLAN,
  });
});

afterEach(() => api.close());

test("a plan names the earlier plans that it was written after", async () => {
  renderRoutes([{ path: "/", element: <WrittenPlan planId="p1" /> }]);
  const link = await screen.findByRole("link", { name: "Which database" });
  expect(link.getAttribute("href")).toBe("/plans/p0");
  expect(link.closest("p")?.textContent).toContain("· after Which database");
});

import { fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { ShareDialog } from "./ShareDialog";

let api: TestApi;
afterEach(() => api.close());

const LINK = {
  link_id: "l1",
  kind: "run",
  execution_id: "e1",
  request_id: null,
  created_at: "2026-01-01T00:00:00+00:00",
  expires_at: "2026-01-08T00:00:00+00:00",
  target: null,
  created_by: null,
};

function show() {
  const dialog = <ShareDialog executionId="e1" open onClose={() => undefined} />;
  renderRoutes([{ path: "/", element: dialog }]);
}

test("a link is made for what is chosen, and shown", async () => {
  api = await startTestApi({
    "GET /api/links": { links: [], next_cursor: null },
    "POST /api/executions/e1/links": { ...LINK, key: "k", url: "https://p.example/links/k" },
  });
  show();
  fireEvent.click(await screen.findByRole("radio", { name: "Result and steps" }));
  fireEvent.change(screen.getByLabelText("Valid for"), { target: { value: "30" } });
  fireEvent.click(screen.getByRole("button", { name: "Make a link" }));
  const field = await screen.findByLabelText<HTMLInputElement>("The new link");
  expect(field.value).toBe("https://p.example/links/k");
  const made = api.requests.find(({ route }) => route.startsWith("POST"));
  expect(JSON.parse(made?.body ?? "")).toEqual({ kind: "run", expires_in_s: 2_592_000 });
});

test("links are listed by what they show, and taken back", async () => {
  const links = [LINK, { ...LINK, link_id: "l2", kind: "request", target: "ops" }];
  api = await startTestApi({
    "GET /api/links": { links, next_cursor: null },
    "DELETE /api/links/l2": {},
  });
  show();
  expect(await screen.findByText("One answer, sent to ops")).toBeTruthy();
  const asked = api.requests.find(({ route }) => route === "GET /api/links");
  expect(asked?.url).toContain("execution_id=e1");
  fireEvent.click(screen.getByRole("button", { name: "Take back: One answer, sent to ops" }));
  await waitFor(() =>
    expect(api.requests.some(({ route }) => route === "DELETE /api/links/l2")).toBe(true),
  );
});

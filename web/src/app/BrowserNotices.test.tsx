import { waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BrowserNotices } from "@/app/BrowserNotices";
import { renderRoutes, startTestApi, type TestApi } from "@/testApi";

const RUN = {
  execution_id: "e1",
  title: "Three days in Lisbon",
  name: null,
  user_prompt: "",
  status: "executing",
  outcome: null,
  created_at: "2026-01-31T12:00:00Z",
  digest: null,
};
const told: string[] = [];

/** Stands for the notices of the desktop, which are outside of the page. */
class DesktopNotice {
  static permission = "granted";
  onclick: (() => void) | null = null;
  constructor(title: string, { body }: { body: string }) {
    told.push(`${title}: ${body}`);
    setTimeout(() => this.onclick?.());
  }
  close() {}
}
let api: TestApi;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "setTimeout"], shouldAdvanceTime: true });
  vi.stubGlobal("Notification", DesktopNotice);
  vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  told.length = 0;
  api = await startTestApi({ "GET /api/executions": { executions: [RUN], next_cursor: null } });
});

afterEach(async () => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  await api.close();
});

/** Has the page look at the runs again. */
async function again(executions: object[]): Promise<void> {
  api.routes["GET /api/executions"] = { executions, next_cursor: null };
  const before = api.requests.length;
  await vi.advanceTimersByTimeAsync(15_000);
  await waitFor(() => expect(api.requests.length).toBeGreaterThan(before));
}

test("a run that ends or asks is told of once, and leads to its page", async () => {
  const opened: string[] = [];
  const open = (path: string) => opened.push(path);
  renderRoutes([{ path: "/", element: <BrowserNotices open={open} /> }]);
  await waitFor(() => expect(api.requests).toHaveLength(1));
  const done = { ...RUN, status: "completed" };
  const old = { ...done, execution_id: "e0" };
  const quick = { ...done, execution_id: "e2", title: "Quick", created_at: "2999-01-31T12:00:00Z" };
  await again([quick, done, old]);
  await waitFor(() =>
    expect(told).toEqual(["A run is done: Quick", "A run is done: Three days in Lisbon"]),
  );
  await waitFor(() => expect(opened).toEqual(["/runs/e2", "/runs/e1"]));
});

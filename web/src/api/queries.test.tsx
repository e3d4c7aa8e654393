import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ApiError, NETWORK_FAILURE } from "@/api/http";
import { useAnswer, useCancel } from "@/api/mutations";
import {
  retryQuery,
  useExecution,
  useExecutions,
  usePlan,
  useProviders,
  useRequests,
} from "@/api/queries";
import { json, problem, startTestApi, type TestApi } from "@/testApi";

const SUMMARY = { execution_id: "e1", status: "completed" };
const EMPTY = { executions: [], next_cursor: null };
let api: TestApi;

beforeEach(async () => {
  api = await startTestApi({});
});

afterEach(() => api.close());

function shown<Result>(hook: () => Result) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>{children}</QueryClientProvider>
  );
  return renderHook(hook, { wrapper }).result;
}

const asked = (route: string) => api.requests.filter((request) => request.route === route).length;

it("reads lists page by page, with the same filters", async () => {
  api.routes["GET /api/executions"] = (response) => {
    const isFirst = !api.requests.at(-1)?.url.includes("cursor");
    const page = { executions: [SUMMARY], next_cursor: isFirst ? "next" : null };
    json(200, page)(response, "");
  };
  const list = shown(() => useExecutions({ status: "completed" }));
  await waitFor(() => expect(list.current.hasNextPage).toBe(true));
  await act(() => list.current.fetchNextPage());
  await waitFor(() => expect(list.current.data?.pages).toHaveLength(2));
  expect(list.current.hasNextPage).toBe(false);
  expect(api.requests.map(({ url }) => url)).toEqual([
    "/api/executions?digest=true&status=completed",
    "/api/executions?digest=true&status=completed&cursor=next",
  ]);
});

it("asks for nothing without an id", () => {
  const plan = shown(() => usePlan(null));
  expect(plan.current.fetchStatus).toBe("idle");
});

it("reads again what a command changes, and nothing else", async () => {
  api.routes["GET /api/executions/e1"] = SUMMARY;
  api.routes["GET /api/executions/e2"] = SUMMARY;
  api.routes["GET /api/executions"] = EMPTY;
  api.routes["GET /api/requests"] = { requests: [], total: 0, next_cursor: null };
  api.routes["GET /api/providers"] = { details: [] };
  api.routes["POST /api/executions/e1/cancel"] = SUMMARY;
  const page = shown(() => ({
    queries: [
      useExecution("e1"),
      useExecution("e2"),
      useExecutions(),
      useRequests(),
      useProviders(),
    ],
    cancel: useCancel("e1"),
  }));
  const areRead = () => page.current.queries.every((query) => query.isSuccess);
  await waitFor(() => expect(areRead()).toBe(true));
  await act(() => page.current.cancel.mutateAsync({ cause: "no" }));
  await waitFor(() => expect(asked("GET /api/executions/e1")).toBe(2));
  await waitFor(() => expect(asked("GET /api/executions")).toBe(2));
  await waitFor(() => expect(asked("GET /api/requests")).toBe(2));
  expect([asked("GET /api/executions/e2"), asked("GET /api/providers")]).toEqual([1, 1]);
});

it("reads requests again where the answer came too late", async () => {
  api.routes["GET /api/requests"] = { requests: [], total: 0, next_cursor: null };
  const late = problem(410, "request-closed", "Its time was over.");
  api.routes["POST /api/executions/e1/requests/r1"] = late;
  const page = shown(() => ({ requests: useRequests(), answer: useAnswer() }));
  await waitFor(() => expect(page.current.requests.isSuccess).toBe(true));
  const answer = { executionId: "e1", requestId: "r1", answer: { decision: "approve" } };
  await act(() => page.current.answer.mutateAsync(answer).catch(() => {}));
  await waitFor(() => expect(asked("GET /api/requests")).toBe(2));
  expect(page.current.answer.error).toMatchObject({ code: "request-closed", status: 410 });
});

it("reads the providers again and again while a model is downloaded", async () => {
  const download = { model: "m", done_bytes: 43, size_bytes: 100 };
  const answer = (details: object[]) => ({
    providers: [],
    default_models: {},
    models: {},
    details,
  });
  api.routes["GET /api/providers"] = answer([{ name: "local", download }]);
  const providers = shown(() => useProviders());
  await waitFor(() => expect(providers.current.data?.details[0]?.download).toEqual(download));
  api.routes["GET /api/providers"] = answer([{ name: "local", download: null }]);
  await waitFor(() => expect(providers.current.data?.details[0]?.download).toBeNull(), {
    timeout: 3_000,
  });
});

it("tries only failures again that may pass", () => {
  const failure = (code: string, status: number) => new ApiError(code, "it failed", status);
  expect(retryQuery(0, failure(NETWORK_FAILURE, 0))).toBe(true);
  expect(retryQuery(0, failure("server-draining", 503))).toBe(true);
  expect(retryQuery(0, failure("not-found", 404))).toBe(false);
  expect(retryQuery(3, failure(NETWORK_FAILURE, 0))).toBe(false);
});

// @vitest-environment node
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type ApiError, addressOf, call, NETWORK_FAILURE } from "@/api/http";

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;
let server: Server;
let handle: Handler;
const seen: { method: string; url: string; headers: IncomingMessage["headers"]; body: string }[] =
  [];

beforeEach(async () => {
  seen.length = 0;
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const { method = "", url = "", headers } = request;
    seen.push({ method, url, headers, body });
    handle(request, response, body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  vi.stubGlobal("document", { baseURI: `http://127.0.0.1:${port}/below/` });
});

afterEach(async () => {
  vi.unstubAllGlobals();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function answer(status: number, body: unknown, type = "application/json"): void {
  handle = (_, response) => {
    response.writeHead(status, { "Content-Type": type });
    response.end(status === 204 ? "" : typeof body === "string" ? body : JSON.stringify(body));
  };
}

async function failureOf(promise: Promise<unknown>): Promise<ApiError> {
  return promise.then(
    () => expect.unreachable("the call succeeds"),
    (error: ApiError) => error,
  );
}

it("asks below the path that the page is served under, and sends no empty parameters", async () => {
  answer(200, { plans: [], next_cursor: null });
  const query = { q: "water & ice", cursor: null };
  expect(await call("listPlans", { query })).toEqual({ plans: [], next_cursor: null });
  expect(seen[0]?.url).toBe("/below/api/plans?q=water+%26+ice");
});

it("keeps the slashes of a nested node's path and encodes the rest", () => {
  const path = { execution_id: "x", path: "loop[2]/sum marise" };
  expect(addressOf("explainNode", path).pathname).toBe(
    "/below/api/executions/x/explain/loop%5B2%5D/sum%20marise",
  );
});

it("takes numbers in a path", () => {
  const path = { plan_id: "p", revision: 2 };
  expect(addressOf("getRevision", path).pathname).toBe("/below/api/plans/p/revisions/2");
});

it("sends the body, the key and the hash that is to be changed", async () => {
  answer(200, {});
  const parts = { path: { plan_id: "f" }, body: { name: "Note" }, key: "k", ifMatch: "abc" };
  await call("updateFlow", parts);
  expect(seen[0]).toMatchObject({
    method: "PUT",
    body: '{"name":"Note"}',
    headers: { "content-type": "application/json", "idempotency-key": "k", "if-match": '"abc"' },
  });
});

it("returns nothing where nothing is answered", async () => {
  answer(204, "");
  expect(await call("deletePlan", { path: { plan_id: "p" } })).toBeUndefined();
});

it("throws the problem that the service answers", async () => {
  const issues = [{ code: "missing-field", message: "a node has no type", pointer: "/nodes/0" }];
  const problem = {
    status: 422,
    code: "graph-invalid",
    detail: "The graph has an error.",
    hint: "Fix it.",
  };
  answer(422, { ...problem, issues }, "application/problem+json");
  const error = await failureOf(call("checkGraph", { body: { graph: {} } }));
  expect(error).toMatchObject({
    message: "The graph has an error.",
    code: "graph-invalid",
    status: 422,
    hint: "Fix it.",
    issues,
  });
});

it("names the status where a proxy answers", async () => {
  answer(502, "<html>Bad gateway</html>", "text/html");
  const error = await failureOf(call("listLimits", {}));
  expect(error).toMatchObject({ code: "unexpected-answer", status: 502, problem: null });
  expect(error.message).toBe("The service answered 502 Bad Gateway.");
});

it("has a sentence of its own for a network that fails", async () => {
  handle = (request) => request.socket.destroy();
  const error = await failureOf(call("listLimits", {}));
  expect(error).toMatchObject({ code: NETWORK_FAILURE, status: 0 });
  expect(seen).toHaveLength(1);
});

it("sends a request with a key once more, with the same key, where the network fails", async () => {
  let requests = 0;
  handle = (request, response) => {
    requests += 1;
    if (requests === 1) request.socket.destroy();
    else response.end('{"execution_id":"x"}');
  };
  const body = { plan_id: "p", start: true };
  expect(await call("createExecution", { body, key: "once" })).toEqual({ execution_id: "x" });
  expect(seen.map(({ headers }) => headers["idempotency-key"])).toEqual(["once", "once"]);
});

it("throws an abort as it is", async () => {
  handle = () => controller.abort();
  const controller = new AbortController();
  const error = await failureOf(call("listLimits", { signal: controller.signal }));
  expect(error.name).toBe("AbortError");
});

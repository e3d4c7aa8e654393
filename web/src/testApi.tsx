import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import type { Window as HappyWindow } from "happy-dom";
import { createMemoryRouter, type RouteObject, RouterProvider } from "react-router";
import { TooltipProvider } from "@/ui/Tooltip";

/** What a route answers: JSON with 200, or whatever it writes itself. */
type Handler = (response: ServerResponse, body: string) => void;
export type TestAnswer = Record<string, unknown> | Handler;

/** A service on loopback that answers as a test says; unknown routes are 404. */
export interface TestApi {
  /** "GET /api/providers", without the query. */
  routes: Record<string, TestAnswer>;
  requests: { route: string; url: string; body: string }[];
  close: () => Promise<void>;
}

/** Starts a service, and has the page ask it. */
export async function startTestApi(routes: Record<string, TestAnswer>): Promise<TestApi> {
  const requests: TestApi["requests"] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const url = request.url ?? "";
    const route = `${request.method} ${url.split("?")[0]}`;
    requests.push({ route, url, body });
    const answer = api.routes[route] ?? problem(404, "not-found", `nothing is at ${url}`);
    if (typeof answer === "function") answer(response, body);
    else json(200, answer)(response, body);
  });
  const api: TestApi = {
    routes,
    requests,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  (window as unknown as HappyWindow).happyDOM.setURL(`http://127.0.0.1:${port}/`);
  return api;
}

/** Answers with JSON. */
export function json(status: number, body: object, type = "application/json"): Handler {
  return (response) => {
    response.writeHead(status, { "Content-Type": type });
    response.end(JSON.stringify(body));
  };
}

/** Answers with a failure, as the service does. */
export function problem(status: number, code: string, detail: string, more = {}): Handler {
  const body = { type: "about:blank", title: code, status, code, detail, ...more };
  return json(status, body, "application/problem+json");
}

/** Renders pages with what the app gives them, at an address. */
export function renderRoutes(routes: RouteObject[], at = "/") {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const router = createMemoryRouter(routes, { initialEntries: [at] });
  const view = render(
    <QueryClientProvider client={queries}>
      <TooltipProvider>
        <RouterProvider router={router} />
      </TooltipProvider>
    </QueryClientProvider>,
  );
  return { ...view, router, queries };
}

// @vitest-environment node
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { streamPlan } from "@/api/planStream";
import { serverEvents } from "@/api/sse";

let server: Server;
let pieces: Buffer[];
let isCut: boolean;
let isHeld: boolean;
let left: Promise<void>;

beforeEach(async () => {
  isCut = isHeld = false;
  let leave = () => {};
  left = new Promise((resolve) => {
    leave = resolve;
  });
  server = createServer(async (request, response) => {
    request.socket.on("close", leave);
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    for (const piece of pieces) {
      response.write(piece);
      await new Promise(setImmediate);
    }
    if (isCut) request.socket.destroySoon();
    else if (!isHeld) response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  vi.stubGlobal("document", { baseURI: `http://127.0.0.1:${port}/` });
});

afterEach(async () => {
  vi.unstubAllGlobals();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function sending(text: string, size = text.length): void {
  const bytes = Buffer.from(text);
  pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
}

const event = (name: string, data: unknown) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const WRITTEN = [
  event("delta", { text: "Hm, ", reasoning: true }),
  event("title", { title: "First 🌊" }),
  ": ping\n\n",
  event("repair", { attempt: 2, diagnostics: [{ code: "flow-cycle" }] }),
  event("node", { id: "a", name: "Ä" }),
  event("plan", { plan_id: "p" }),
].join("");

async function eventsOf(signal = new AbortController().signal): Promise<unknown[]> {
  const events = [];
  for await (const told of streamPlan({ prompt: "a goal" }, signal)) events.push(told);
  return events;
}

it.each([1, 2, 7, 10_000])("reads a plan in pieces of %i bytes", async (size) => {
  sending(WRITTEN, size);
  expect(await eventsOf()).toEqual([
    { event: "delta", data: { text: "Hm, ", reasoning: true } },
    { event: "title", data: { title: "First 🌊" } },
    { event: "repair", data: { attempt: 2, diagnostics: [{ code: "flow-cycle" }] } },
    { event: "node", data: { id: "a", name: "Ä" } },
    { event: "plan", data: { plan_id: "p" } },
  ]);
});

it("ends with the problem of a plan that failed", async () => {
  const problem = { status: 422, code: "plan-invalid", detail: "No model got it right." };
  sending(event("title", { title: "T" }) + event("problem", problem));
  expect((await eventsOf()).at(-1)).toEqual({ event: "problem", data: problem });
});

it("says where the connection breaks", async () => {
  sending(event("title", { title: "T" }));
  isCut = true;
  await expect(eventsOf()).rejects.toMatchObject({ code: "network-failure" });
});

it("hangs up when it is aborted, so that the planning stops", async () => {
  sending(event("title", { title: "T" }));
  isHeld = true;
  const controller = new AbortController();
  const stream = streamPlan({ prompt: "a goal" }, controller.signal);
  expect(await stream.next()).toMatchObject({ value: { event: "title" } });
  controller.abort();
  await expect(stream.next()).rejects.toMatchObject({ name: "AbortError" });
  await left;
});

it("reads both line ends, several data lines, and ids", async () => {
  const text = "id: 7\r\nevent: a\r\ndata: x\r\ndata:y\r\n\r\nretry: 3\n\ndata: z\r\n\r\n";
  const found = [];
  for await (const batch of serverEvents(new Response(text))) found.push(...batch);
  expect(found).toEqual([
    { event: "a", data: "x\ny", id: "7" },
    { event: "message", data: "z", id: null },
  ]);
});

// @vitest-environment node
import fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import type { ConnectionState } from "@/stream/connection";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { RunServer, type RunServerOptions } from "@/stream/runServer";
import { newRunState } from "@/stream/runState";
import { type FollowedRun, followRun } from "@/stream/runStore";

const QUICK = { backoffMs: 1, longestBackoffMs: 4, pollMs: 2, pingMs: 800, lostAfterMs: 10_000 };
const RUNS = goldenRuns();
const NESTED = RUNS.find((run) => run.name.startsWith("cut_off_inside_nodes")) ?? RUNS[0];
if (NESTED === undefined) throw new Error("there are no recorded runs");

let server: RunServer | null = null;
let followed: FollowedRun | null = null;
const states: ConnectionState[] = [];

beforeEach(() => {
  vi.stubGlobal("WebSocket", WebSocket);
  states.length = 0;
});

afterEach(async () => {
  followed?.close();
  await server?.close();
  vi.unstubAllGlobals();
});

async function follow(run: (typeof RUNS)[number], how: Partial<RunServerOptions> = {}) {
  followed?.close();
  await server?.close();
  server = new RunServer({ events: run.events, snapshot: run.state, ...how });
  vi.stubGlobal("document", { baseURI: await server.listen() });
  followed = followRun("x", QUICK);
  const { store } = followed;
  states.push(store.getState().connection);
  store.subscribe(({ connection }) => {
    if (connection !== states.at(-1)) states.push(connection);
  });
  return { store, server };
}

async function finalState(run: (typeof RUNS)[number], how: Partial<RunServerOptions> = {}) {
  const { store } = await follow(run, how);
  await vi.waitFor(
    () => expect(store.getState()).toMatchObject({ isWhole: true, connection: { kind: "ended" } }),
    { timeout: 5_000, interval: 2 },
  );
  return store.getState().run;
}

function folded(run: (typeof RUNS)[number], hasText = true) {
  const events = run.events.filter((event) => hasText || event.seq !== 0);
  return applyEvents(newRunState("x"), events);
}

const ends = (run: (typeof RUNS)[number]) => run.events.at(-1)?.type.startsWith("execution.");
const OVER = RUNS.filter(ends);

it("has runs that end", () => {
  expect(OVER.length).toBeGreaterThan(40);
});

it.each(["websocket", "sse", "polling"] as const)(
  "ends in the same state wherever the connection breaks, by %s",
  async (transport) => {
    const hasSockets = transport === "websocket";
    const hasStreams = transport !== "polling";
    await fc.assert(
      fc.asyncProperty(
        fc.nat(OVER.length - 1),
        fc.array(fc.nat(12), { maxLength: 6 }),
        fc.integer({ min: 1, max: 9 }),
        fc.nat(5),
        fc.integer({ min: 200, max: 5_000 }),
        async (index, cuts, batch, repeated, partChars) => {
          const run = OVER[index] ?? NESTED;
          const faults = { cuts, batch, repeated, partChars, hasSockets, hasStreams };
          // Streamed text is not stored, so polling does not get it.
          const expected = folded(run, transport !== "polling");
          expect(await finalState(run, faults)).toEqual(expected);
        },
      ),
      { numRuns: 25 },
    );
    const live = states.filter((state) => state.kind === "live");
    expect(live.some((state) => state.transport === transport)).toBe(true);
  },
  60_000,
);

it("asks for what is missing, once what came leaves out an event", async () => {
  const run = NESTED;
  expect(await finalState(run, { leftOut: 5 })).toEqual(folded(run));
  expect(server?.asked).toEqual(["0", "4"]);
});

it("shows the snapshot until the events have caught up", async () => {
  const { store } = await follow(NESTED, { events: NESTED.events.slice(0, 3) });
  await vi.waitFor(() => expect(store.getState().run.status).toBe(NESTED.state.status));
  expect(store.getState().isWhole).toBe(false);
});

it("says so where the connection breaks with the snapshot alone", async () => {
  const state = { ...NESTED.state, last_seq: 7 };
  await finalState({ ...NESTED, state }, { cuts: [0] });
  expect(states).toContainEqual({ kind: "reconnecting", seq: 7 });
});

it("says as of which event it shows a run while it connects again", async () => {
  const state = { ...NESTED.state, last_seq: 2 };
  await finalState({ ...NESTED, state }, { cuts: [4], batch: 1 });
  const live = { kind: "live", transport: "websocket" };
  // An attempt that fails on a busy machine is said again.
  const changes = states.filter((each, index) => each.kind !== states[index - 1]?.kind);
  expect(changes).toEqual([
    { kind: "connecting" },
    live,
    { kind: "reconnecting", seq: 4 },
    live,
    { kind: "ended" },
  ]);
});

it("is lost since the last sign of life", async () => {
  const { server: served } = await follow(NESTED, { events: NESTED.events.slice(0, 3) });
  // It may be live for a moment only: a pong that takes 20 ms is late here.
  await vi.waitFor(() => expect(states.map(({ kind }) => kind)).toContain("live"));
  followed?.close();
  await served.close();
  const before = Date.now();
  followed = followRun("x", { ...QUICK, lostAfterMs: 5 });
  const { store: other } = followed;
  await vi.waitFor(() => expect(other.getState().connection.kind).toBe("lost"));
  const { connection } = other.getState();
  expect(connection.kind === "lost" && connection.since).toBeGreaterThanOrEqual(before - 5);
});

it.each([
  [{ status: 404, code: "not-found" }, true],
  [{ status: 401, code: "unauthorized" }, false],
])("stops where the service refuses with %o", async (refusal, hasSockets) => {
  const { store } = await follow(NESTED, { refusal, hasSockets });
  await vi.waitFor(() =>
    expect(store.getState().connection).toMatchObject({ kind: "refused", error: refusal }),
  );
});

it("closes the connection to the run before", async () => {
  const unended = { events: NESTED.events.slice(0, 3) };
  const { server: served } = await follow(NESTED, unended);
  const first = followed;
  await vi.waitFor(() => expect(first?.store.getState().run.lastSeq).toBeGreaterThan(0));
  followed = followRun("y", QUICK);
  const kinds: string[] = [];
  followed.store.subscribe(({ connection }) => kinds.push(connection.kind));
  await vi.waitFor(() => expect(kinds).toContain("live")); // for a moment: this server hangs up
  await vi.waitFor(() => expect(served.openSockets).toBeLessThanOrEqual(1));
});

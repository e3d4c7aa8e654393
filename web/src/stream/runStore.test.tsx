import { act, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import type { EdgeDocument } from "@/api/types";
import { edgeState } from "@/stream/edges";
import { goldenRuns } from "@/stream/goldenRuns";
import { RunProvider, useRun, useRunConnection } from "@/stream/RunProvider";
import { RunServer } from "@/stream/runServer";
import type { NodeState } from "@/stream/runState";
import { followRun, RunFeed } from "@/stream/runStore";

const FOUND = goldenRuns().find((run) => run.name === "chain.json 1");
if (FOUND === undefined) throw new Error("there is no recorded chain");
const CHAIN = FOUND;

afterEach(() => {
  vi.unstubAllGlobals();
  document.head.replaceChildren();
});

async function openPageAt(server: RunServer): Promise<void> {
  const base = document.createElement("base");
  base.href = await server.listen();
  document.head.append(base);
  vi.stubGlobal("WebSocket", WebSocket);
}

it("updates once for each animation frame", () => {
  const frames: (() => void)[] = [];
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => frames.push(draw));
  vi.stubGlobal("cancelAnimationFrame", () => {});
  const feed = new RunFeed("x");
  const updated = vi.fn();
  feed.store.subscribe(updated);
  for (const event of CHAIN.events) feed.addEvents([event]);
  expect([frames.length, updated.mock.calls.length]).toEqual([1, 0]);
  frames[0]?.();
  expect(updated).toHaveBeenCalledOnce();
  expect(feed.store.getState().run.status).toBe("completed");
  feed.close();
});

it("updates in a hidden tab too, where no frame is drawn", () => {
  vi.useFakeTimers();
  vi.stubGlobal("requestAnimationFrame", () => 1);
  const feed = new RunFeed("x");
  feed.addEvents(CHAIN.events);
  vi.advanceTimersByTime(1_000);
  expect(feed.store.getState().run.status).toBe("completed");
  vi.useRealTimers();
});

it("follows with the overview some times a second, and at once where the run turns", () => {
  vi.useFakeTimers();
  let draw = () => {};
  vi.stubGlobal("requestAnimationFrame", (next: () => void) => {
    draw = next;
    return 1;
  });
  const feed = new RunFeed("x");
  const seen: [at: number, event: string][] = [];
  feed.store.subscribe(({ overview }, before) => {
    const last = CHAIN.events.findLast(({ seq }) => seq === overview.lastSeq);
    if (overview !== before.overview) seen.push([performance.now(), last?.type ?? ""]);
  });
  const start = performance.now();
  const frames = CHAIN.events.map((event) => {
    feed.addEvents([event]);
    draw();
    vi.advanceTimersByTime(16);
    return feed.store.getState().run.lastSeq;
  });
  expect(frames).toEqual(CHAIN.events.map(({ seq }) => seq));
  const quiet = seen.filter(([, type]) => !type.startsWith("execution."));
  expect(quiet.length).toBeLessThanOrEqual((performance.now() - start) / 200);
  expect(seen.map(([, type]) => type)).toEqual(
    expect.arrayContaining(["execution.created", "execution.started", "execution.completed"]),
  );
  expect(feed.store.getState().overview).toBe(feed.store.getState().run);
  feed.close();
  vi.useRealTimers();
});

it("connects again at once when the browser is online again", async () => {
  const served = { events: CHAIN.events, snapshot: CHAIN.state, batch: 1, cuts: [3] };
  const server = new RunServer(served);
  await openPageAt(server);
  const { store, close } = followRun("x", { backoffMs: 60_000, longestBackoffMs: 60_000 });
  await vi.waitFor(() => expect(store.getState().connection.kind).toBe("reconnecting"));
  window.dispatchEvent(new Event("online"));
  await vi.waitFor(() => expect(store.getState().connection.kind).toBe("ended"));
  close();
  await server.close();
});

it("renders a card only when its own node has changed", async () => {
  const server = new RunServer({ events: CHAIN.events, snapshot: CHAIN.state, batch: 1 });
  await openPageAt(server);
  const seen = new Map<string, (NodeState | undefined)[]>();

  function Card({ path }: { path: string }) {
    const node = useRun((run) => run.nodes.get(path));
    seen.set(path, [...(seen.get(path) ?? []), node]);
    return <p>{`${path} ${node?.status}`}</p>;
  }
  const edge = CHAIN.state.graph?.edges[0];
  if (edge === undefined) throw new Error("the chain has no edge");
  function Status() {
    const passed = useRun((run) => edgeState(run, edge as EdgeDocument));
    return <p>{`${useRunConnection().connection.kind} ${passed}`}</p>;
  }
  render(
    <RunProvider executionId="x" waiting={<p>waiting</p>}>
      <Card path="a" />
      <Card path="b" />
      <Card path="c" />
      <Status />
    </RunProvider>,
  );
  await screen.findByText("ended delivered");
  expect(screen.getByText("c completed")).toBeTruthy();
  for (const nodes of seen.values()) {
    expect(nodes.every((node, index) => index === 0 || node !== nodes[index - 1])).toBe(true);
  }
  await act(() => server.close());
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ExecutionEvent, SnapshotMessage } from "@/api/types";
import { logLines } from "@/screens/run/logLines";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { type NodeState, newRunState, type RunState } from "@/stream/runState";
import { stateOfSnapshot } from "@/stream/snapshot";

const RUNS = goldenRuns();

function fold(events: readonly ExecutionEvent[]): RunState {
  return applyEvents(newRunState("x"), events);
}

/** What both events and a snapshot say of a node. */
function known(node: NodeState) {
  const { spans, startedAt, endedAt, wave, prompted, type, name, origin, calls, ...rest } = node;
  return {
    ...rest,
    isStarted: startedAt !== null,
    isEnded: endedAt !== null,
    wave: startedAt === null ? null : wave,
    origin: origin === "reused",
  };
}

function comparable(state: RunState) {
  const { nodes, waves, log, recoveries, ledger, runs, graphs, closedRequests, ...rest } = state;
  const { createdAt, startedAt, endedAt, requests, active, lastAt, floors, ...plain } = rest;
  return {
    ...plain,
    nodes: [...nodes.values()].map(known),
    changes: plain.changes.map(({ at, before, dropped, ...told }) => ({
      ...told,
      dropped: dropped.map(known),
    })),
    refusals: plain.refusals.map(({ error }) => error),
    waves: waves.map((wave) => wave.nodes),
    requests: [...requests.values()].map(({ since, ...request }) => request),
    isStarted: startedAt !== null,
    isEnded: endedAt !== null,
  };
}

describe.each(RUNS.map((run) => [run.name, run] as const))("%s", (_, run) => {
  it("ends in the state that the service folds", () => {
    expect(comparable(fold(run.events))).toEqual(comparable(stateOfSnapshot(run.state)));
  });

  it("has the waves that the service starts", () => {
    let state = newRunState("x");
    for (const event of run.events) {
      state = applyEvents(state, [event]);
      if (event.type !== "wave.started" || event.path !== undefined) continue;
      expect(state.waves[event.data.wave - 1]?.nodes).toEqual(
        expect.arrayContaining(event.data.nodes ?? []),
      );
    }
  });

  it("has the typed log of the service, but for calls and starts, which it tells in words", () => {
    const state = fold(run.events);
    const isCommon = ({ type }: { type: string }) => type !== "log" && !/_call_/.test(type);
    // What an agent asks is about a call, which the service tells with its arguments.
    const entryOf = (nodeId: string, type: string, content: string) => {
      const isAboutCall =
        /^(wait_input|input_received)$/.test(type) && state.nodes.get(nodeId)?.type === "agent";
      // The page says the type beside the name (logLines.test.ts), and as the service where it begins again.
      const again = /, again: .*$/.exec(content)?.[0] ?? "";
      const told = type === "step_start" ? again : content;
      return { nodeId, type, content: isAboutCall ? "" : told };
    };
    expect(
      logLines(state)
        .filter(isCommon)
        .map(({ path, type, text }) => entryOf(path, type, text)),
    ).toEqual(
      run.typedLog
        .filter(isCommon)
        .map(({ nodeId, type, content }) => entryOf(nodeId, type, content)),
    );
  });
});

describe("any delivery", () => {
  const runs = fc.nat(RUNS.length - 1).map((index) => RUNS[index] as (typeof RUNS)[number]);

  it("gives the same state, however often and in whatever batches events come", () => {
    const repeats = fc.array(fc.tuple(fc.nat(300), fc.nat(40)), { maxLength: 8 });
    fc.assert(
      fc.property(runs, repeats, fc.integer({ min: 1, max: 50 }), (run, replays, size) => {
        let state = newRunState("x");
        for (let at = 0; at < run.events.length; at += size) {
          state = applyEvents(state, run.events.slice(at, at + size));
          for (const [from, length] of replays) {
            const known = Math.min(from, at);
            state = applyEvents(
              state,
              run.events.slice(known, Math.min(known + length, at + size)),
            );
          }
        }
        expect(state).toEqual(fold(run.events));
      }),
    );
  });

  it("changes nothing by stored events that it has, in any order", () => {
    fc.assert(
      fc.property(runs, fc.infiniteStream(fc.nat(1_000)), (run, order) => {
        const state = fold(run.events);
        const stored = run.events.filter((event) => event.seq !== 0);
        const keyed = stored.map((event) => ({ event, key: order.next().value }));
        keyed.sort((a, b) => a.key - b.key);
        expect(
          applyEvents(
            state,
            keyed.map(({ event }) => event),
          ),
        ).toBe(state);
      }),
    );
  });

  it("leaves out what follows a gap, so that it can be asked for again", () => {
    fc.assert(
      fc.property(runs, fc.nat(), (run, chosen) => {
        const stored = run.events.filter((event) => event.seq !== 0);
        const gap = chosen % stored.length;
        const state = fold(stored.toSpliced(gap, 1));
        expect(state.lastSeq).toBe(gap);
        expect(applyEvents(state, stored)).toEqual(fold(stored));
      }),
    );
  });

  it("leaves the states before as they were", () => {
    for (const { events } of RUNS) {
      let state = newRunState("x");
      const before: [RunState, string][] = [];
      for (const event of events) {
        before.push([state, written(state)]);
        state = applyEvents(state, [event]);
      }
      for (const [old, text] of before) expect(written(old)).toBe(text);
    }
  });
});

function written(state: RunState): string {
  return JSON.stringify(state, (_, value) => (value instanceof Map ? [...value] : value));
}

const TYPES = [
  "execution.created",
  "execution.started",
  "execution.paused",
  "execution.resumed",
  "execution.warned",
  "execution.completed",
  "execution.failed",
  "execution.cancelled",
  "plan.requested",
  "plan.revised",
  "plan.refused",
  "wave.started",
  "wave.completed",
  "node.started",
  "node.completed",
  "node.failed",
  "node.retrying",
  "node.skipped",
  "node.blocked",
  "node.cancelled",
  "node.waiting",
  "node.answered",
  "node.parked",
  "node.unparked",
  "node.log",
  "node.event",
  "node.delta",
  "usage",
] as const satisfies readonly ExecutionEvent["type"][];

it("is tested with events of every type", () => {
  type Missing = Exclude<ExecutionEvent["type"], (typeof TYPES)[number]>;
  const none: Missing[] = [];
  expect(none).toEqual([]);
  const seen = new Set(RUNS.flatMap((run) => run.events.map((event) => event.type)));
  expect([...seen].sort()).toEqual([...TYPES].sort());
});

it("moves the cursor past events of types that it does not know", () => {
  const [run] = RUNS;
  const events = run?.events.slice(0, 2) ?? [];
  const unknown = { ...events[1], seq: 3, type: "node.invented" } as unknown as ExecutionEvent;
  const before = fold(events);
  expect(applyEvents(before, [unknown])).toEqual({ ...before, lastSeq: 3 });
});

describe("streamed text", () => {
  const node = (over: object) =>
    ({ execution_id: "x", seq: 0, at: "2026-01-01", path: "a", attempt: 1, ...over }) as never;
  const delta = (text: string, offset: number, attempt = 1) =>
    node({ type: "node.delta", attempt, data: { kind: "text", text, offset } });
  const started = (seq: number, attempt: number) =>
    node({ type: "node.started", seq, attempt, data: {} });
  const textOf = (events: ExecutionEvent[]) => fold(events).nodes.get("a")?.text.tail;

  it("puts pieces at their offsets, which count characters and not UTF-16 units", () => {
    expect(textOf([delta("🌊 wa", 0), delta("ter 🌊", 4), delta("!", 9)])).toBe("🌊 water 🌊!");
    expect(textOf([delta("🌊 wa", 0), delta("ter", 4), delta("🌊 wa", 0)])).toBe("🌊 water");
    expect(textOf([delta("🌊 wa", 0), delta("🌊 wave", 0)])).toBe("🌊 wave");
    expect(textOf([delta("a", 0), delta("c", 2)])).toBe("a");
  });

  it("begins anew with each attempt, and ignores the attempt before", () => {
    expect(textOf([started(1, 1), delta("one", 0), started(2, 2), delta("x", 3)])).toBe("");
    expect(textOf([started(1, 2), delta("two", 0, 2), delta("one", 0, 1)])).toBe("two");
    expect(textOf([delta("one", 0, 1), delta("two", 0, 2)])).toBe("two");
  });

  it("begins anew where the node discards it, with the reasoning", () => {
    const discarded = node({
      type: "node.event",
      seq: 1,
      data: { event_type: "text_discarded", data: {} },
    });
    const reasoning = node({
      type: "node.delta",
      data: { kind: "reasoning", text: "hm", offset: 0 },
    });
    expect(textOf([delta("Hello", 0), discarded])).toBe("");
    expect(textOf([delta("Hello", 0), discarded, delta("He", 0)])).toBe("He");
    expect(fold([reasoning, discarded]).nodes.get("a")?.reasoning.tail).toBe("");
  });

  it("comes from the event of what was cut off, without any piece of it, until it is tried again", () => {
    const streamed = {
      text: { type: "text", value: "Lisb" },
      reasoning: { type: "text", value: "So" },
    };
    for (const type of ["node.cancelled", "node.failed", "node.retrying"]) {
      const cut = node({ type, seq: 2, data: { delay_s: 1, next_attempt: 2, streamed } });
      for (const events of [
        [started(1, 1), cut],
        [started(1, 1), delta("Lis", 0), cut],
      ]) {
        const { text, reasoning, usage } = fold(events).nodes.get("a") as NodeState;
        expect([text.tail, text.length, reasoning.tail]).toEqual(["Lisb", 4, "So"]);
        expect([usage.calls, usage.cost_usd]).toEqual([0, null]);
      }
      if (type === "node.retrying") expect(textOf([started(1, 1), cut, started(3, 2)])).toBe("");
    }
  });

  it("keeps the end of a long text, and where it begins", () => {
    const piece = "🌊".repeat(50_000);
    const text = fold([0, 1, 2, 3].map((index) => delta(piece, index * 50_000))).nodes.get(
      "a",
    )?.text;
    expect(text?.length).toBe(200_000);
    expect(text?.tail.length).toBeLessThanOrEqual(128_000);
    expect(text && text.offset + [...text.tail].length).toBe(200_000);
  });
});

describe("the time of a node", () => {
  const spansOf = (name: string, path: string) => {
    const run = RUNS.find((each) => each.name === name);
    return fold(run?.events ?? [])
      .nodes.get(path)
      ?.spans.map(({ kind, attempt }) => [kind, attempt]);
  };

  it("is told apart by what it did in each attempt", () => {
    expect(spansOf("retries.json 1", "third")).toEqual([
      ["queued", 1],
      ["working", 1],
      ["backoff", 1],
      ["working", 2],
      ["backoff", 2],
      ["working", 3],
    ]);
    expect(spansOf("approvals.json 1", "ask")).toEqual([
      ["queued", 1],
      ["working", 1],
      ["waiting", 1],
      ["working", 1],
    ]);
  });

  it("does not begin before the graph that it belongs to is there, such as a plan that is written", () => {
    const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString();
    const graph = { nodes: [{ id: "a", type: "text" }], edges: [] };
    const opened = { event_type: "run_graph", data: { key: "plan", graph: "h", document: graph } };
    const events = [
      { type: "node.started", path: "p", data: {} },
      { type: "node.event", path: "p", data: opened },
      { type: "node.started", path: "p[plan]/a", data: {} },
    ].map((event, index) => ({ ...event, execution_id: "x", seq: index + 1, at: at(index * 5) }));
    const spans = fold(events as never).nodes.get("p[plan]/a")?.spans;
    expect(spans?.map(({ kind, from }) => [kind, from])).toEqual([
      ["queued", at(5)],
      ["working", at(10)],
    ]);
  });

  it("waits from the change on that brought its step, or that came before it had begun", () => {
    const run = RUNS.find((each) => each.name.startsWith("changes_while_it_waits"));
    const events = run?.events ?? [];
    const state = fold(events);
    const [first, second] = state.changes.map(({ at }) => at);
    const queued = (path: string) =>
      state.nodes.get(path)?.spans.find(({ kind }) => kind === "queued")?.from;
    // What it needs was done before the change.
    expect([queued("costs"), queued("g")]).toEqual([first, first]);
    // What it needs came after both.
    const asked = state.nodes.get("q")?.endedAt;
    expect(queued("b")).toBe(asked);
    expect(asked && second && asked > second).toBe(true);
  });

  it("leaves out the time in which no process ran it", () => {
    const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString();
    const resumed = { type: "execution.resumed", data: { reason: "recovery", epoch: 2 } };
    const started = { type: "node.started", path: "a", data: {} };
    const logged = { type: "node.log", path: "a", data: { message: "so far" } };
    const again = { ...started, data: { reentry: 1 } };
    const events = [started, logged, resumed, again].map((event, index) => ({
      ...event,
      execution_id: "x",
      seq: index + 1,
      at: at(index * 5),
    }));
    const state = fold(events as never);
    expect(state.recoveries).toBe(1);
    expect(state.nodes.get("a")?.spans.map(({ from, to }) => [from, to])).toEqual([
      [at(0), at(5)],
      [at(15), null],
    ]);
  });

  it("has an end once the node has ended", () => {
    for (const { events } of RUNS) {
      for (const node of fold(events).nodes.values()) {
        if (node.endedAt === null) continue;
        expect(node.spans.every((span) => span.to !== null && span.from <= span.to)).toBe(true);
      }
    }
  });
});

it("has a snapshot as its beginning: later events go on from it", () => {
  const [run] = RUNS;
  const events = run?.events ?? [];
  const snapshot: SnapshotMessage = run?.state as SnapshotMessage;
  expect(applyEvents(stateOfSnapshot(snapshot), events).lastSeq).toBe(snapshot.last_seq);
});

import { createStore, type StoreApi } from "zustand/vanilla";
import type { ExecutionEvent, SnapshotMessage } from "@/api/types";
import { type ConnectionState, type ConnectOptions, connectRun } from "@/stream/connection";
import { applyEvents } from "@/stream/reducer";
import { newRunState, type RunState } from "@/stream/runState";
import { stateOfSnapshot } from "@/stream/snapshot";

/** What a page shows of a run. */
export type RunStoreState = {
  readonly run: RunState;
  /** `run`, or what it was a moment ago: for what is computed from all of its steps. */
  readonly overview: RunState;
  /** Whether `run` has every event up to its `lastSeq`; a snapshot has neither log nor past. */
  readonly isWhole: boolean;
  readonly connection: ConnectionState;
};

export type RunStore = StoreApi<RunStoreState>;

/** Frames are not drawn in hidden tabs; there the state is updated this often. */
const HIDDEN_FLUSH_MS = 500;

/** An overview follows the run this often at most, and less often where it has more steps than milliseconds:
 * one of 500 steps takes as long to draw as a frame or two. */
const OVERVIEW_MS = 200;

/**
 * The state of one run, fed with events and with snapshots. Events are kept and applied together,
 * once for each animation frame. A snapshot is shown until the events have caught up with it.
 */
export class RunFeed {
  readonly store: RunStore;
  private folded: RunState;
  private shown: RunState | null = null;
  private pending: ExecutionEvent[] = [];
  private cancelFlush: (() => void) | null = null;
  private overviewTimer: ReturnType<typeof setTimeout> | null = null;

  constructor(executionId: string) {
    this.folded = newRunState(executionId);
    this.store = createStore<RunStoreState>(() => ({
      run: this.folded,
      overview: this.folded,
      isWhole: false,
      connection: { kind: "connecting" },
    }));
  }

  addEvents(events: readonly ExecutionEvent[]): void {
    for (const event of events) this.pending.push(event);
    this.flushSoon();
  }

  addSnapshot(message: SnapshotMessage): void {
    if (message.last_seq <= this.folded.lastSeq) return;
    this.shown = stateOfSnapshot(message);
    this.flushSoon();
  }

  setConnection(connection: ConnectionState): void {
    if (connection.kind === "ended") this.flush();
    this.store.setState({ connection });
  }

  /** Apply everything that has come. */
  flush(): void {
    this.cancelFlush?.();
    this.cancelFlush = null;
    const events = this.pending;
    this.pending = [];
    this.folded = applyEvents(this.folded, events);
    if (this.shown !== null && this.shown.lastSeq <= this.folded.lastSeq) this.shown = null;
    const run = this.shown ?? this.folded;
    const isWhole = this.shown === null && run.lastSeq > 0;
    const known = this.store.getState();
    if (run === known.run && isWhole === known.isWhole) return;
    const isDue = this.overviewTimer === null || isTurn(known.overview, run);
    this.store.setState({ run, isWhole, overview: isDue ? run : known.overview });
    if (isDue) this.updateOverviewLater();
  }

  close(): void {
    this.cancelFlush?.();
    this.cancelFlush = null;
    clearTimeout(this.overviewTimer ?? undefined);
  }

  private updateOverviewLater(): void {
    clearTimeout(this.overviewTimer ?? undefined);
    const after = Math.max(OVERVIEW_MS, this.folded.nodes.size);
    this.overviewTimer = setTimeout(() => {
      this.overviewTimer = null;
      const { run, overview } = this.store.getState();
      if (run === overview) return;
      this.store.setState({ overview: run });
      this.updateOverviewLater();
    }, after);
  }

  private flushSoon(): void {
    this.cancelFlush ??= onNextFrame(() => this.flush());
  }
}

/** Whether people see at once that a run goes another way, or asks them something. */
function isTurn(before: RunState, after: RunState): boolean {
  return (
    before.status !== after.status ||
    before.graph !== after.graph ||
    before.requests !== after.requests
  );
}

/** A run that the page follows. */
export type FollowedRun = {
  readonly store: RunStore;
  /** Connect again at once. */
  readonly retry: () => void;
  readonly close: () => void;
};

let current: FollowedRun | null = null;

/** Follow a run. A page has one connection: the one to the run before is closed. */
export function followRun(executionId: string, options: ConnectOptions = {}): FollowedRun {
  current?.close();
  const feed = new RunFeed(executionId);
  const connection = connectRun(
    executionId,
    {
      onEvents: (events) => feed.addEvents(events),
      onSnapshot: (message) => feed.addSnapshot(message),
      onState: (state) => feed.setConnection(state),
    },
    options,
  );
  const retryIfBroken = () => {
    const { kind } = feed.store.getState().connection;
    if (kind === "reconnecting" || kind === "lost") connection.retry();
  };
  globalThis.addEventListener?.("online", retryIfBroken);
  const followed: FollowedRun = {
    store: feed.store,
    retry: connection.retry,
    close: () => {
      globalThis.removeEventListener?.("online", retryIfBroken);
      connection.close();
      feed.close();
      if (current === followed) current = null;
    },
  };
  current = followed;
  return followed;
}

/** Call a function at the next animation frame, or a little later where there is none. */
export function onNextFrame(action: () => void): () => void {
  if (typeof requestAnimationFrame === "undefined") {
    const timer = setTimeout(action, 0);
    return () => clearTimeout(timer);
  }
  const frame = requestAnimationFrame(action);
  const timer = setTimeout(action, HIDDEN_FLUSH_MS);
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}

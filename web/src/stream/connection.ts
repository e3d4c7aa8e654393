import { ApiError } from "@/api/http";
import type { ExecutionEvent, SnapshotMessage } from "@/api/types";
import { readBySse } from "@/stream/eventStream";
import { readByPolling } from "@/stream/polling";
import { readBySocket } from "@/stream/socket";

export type TransportName = "websocket" | "sse" | "polling";

/** How a page is connected to a run. */
export type ConnectionState =
  | { readonly kind: "connecting" }
  | { readonly kind: "live"; readonly transport: TransportName }
  /** Shows the run as of event `seq`. */
  | { readonly kind: "reconnecting"; readonly seq: number }
  /** No answer for a while; `since` in milliseconds since the epoch. */
  | { readonly kind: "lost"; readonly since: number }
  /** The run has ended, and everything is here. */
  | { readonly kind: "ended" }
  /** The service refuses; nothing is tried again by itself. */
  | { readonly kind: "refused"; readonly error: ApiError };

/** The handlers of incoming messages. */
export type RunListener = {
  /** Events in order, each once, from the first one on; streamed text may come again. */
  readonly onEvents: (events: readonly ExecutionEvent[]) => void;
  readonly onSnapshot: (message: SnapshotMessage) => void;
  readonly onState: (state: ConnectionState) => void;
};

export type ConnectOptions = {
  /** The first wait before connecting again; it doubles up to `longestBackoffMs`. */
  readonly backoffMs?: number;
  readonly longestBackoffMs?: number;
  /** After so long without an answer the connection is lost. */
  readonly lostAfterMs?: number;
  readonly pollMs?: number;
  /** A silent WebSocket is asked for a sign of life this often; without one it is given up. */
  readonly pingMs?: number;
};

const DEFAULTS: Required<ConnectOptions> = {
  backoffMs: 250,
  longestBackoffMs: 10_000,
  lostAfterMs: 15_000,
  pollMs: 10_000,
  pingMs: 15_000,
};

/** What a transport is given: where it begins, and whom it tells. */
export type TransportContext = {
  readonly executionId: string;
  /** Return the last event that is here. */
  readonly cursor: () => number;
  readonly signal: AbortSignal;
  readonly options: Required<ConnectOptions>;
  /** The connection is open. */
  readonly onOpen: () => void;
  /** Something came, if only a sign of life. */
  readonly onContact: () => void;
  readonly onSnapshot: (message: SnapshotMessage) => void;
  /** Events came. Returns false where some before them are missing: the transport then ends. */
  readonly onEvents: (events: readonly ExecutionEvent[]) => boolean;
};

/** Reads until the connection ends; throws an `ApiError` where the service refuses. */
export type Transport = (context: TransportContext) => Promise<void>;

const READERS: Readonly<Record<TransportName, Transport>> = {
  websocket: readBySocket,
  sse: readBySse,
  polling: readByPolling,
};
const NEXT: Readonly<Record<TransportName, TransportName>> = {
  websocket: "sse",
  sse: "polling",
  polling: "websocket",
};
/** A transport that fails to open so often in a row is given up for the next one. */
const FAILURES_TO_FALL_BACK = 2;
const TERMINAL: ReadonlySet<string> = new Set([
  "execution.completed",
  "execution.failed",
  "execution.cancelled",
]);
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 403, 404, 409, 422]);

/** Follow a run until it has ended or is closed: without a gap, over any break of the connection. */
export function connectRun(
  executionId: string,
  listener: RunListener,
  options: ConnectOptions = {},
): { close: () => void; retry: () => void } {
  const connection = new RunConnection(executionId, listener, { ...DEFAULTS, ...options });
  connection.start();
  return { close: () => connection.close(), retry: () => connection.start() };
}

class RunConnection {
  private readonly executionId: string;
  private readonly listener: RunListener;
  private readonly options: Required<ConnectOptions>;
  private running = new AbortController();
  private wake: () => void = () => {};
  private seq = 0;
  /** The event up to which the run is shown: a snapshot may be ahead of the events that came. */
  private shownSeq = 0;
  private hasEnded = false;
  private transport: TransportName = "websocket";
  private failedOpens = 0;
  private failures = 0;
  private lastContact = Date.now();

  constructor(executionId: string, listener: RunListener, options: Required<ConnectOptions>) {
    this.executionId = executionId;
    this.listener = listener;
    this.options = options;
  }

  /** Connect, or connect again at once, with the best transport first. */
  start(): void {
    if (this.hasEnded) return;
    this.close();
    this.running = new AbortController();
    this.transport = "websocket";
    this.failedOpens = this.failures = 0;
    this.lastContact = Date.now();
    this.tellConnecting();
    void this.run(this.running.signal);
  }

  close(): void {
    this.running.abort();
    this.wake();
  }

  private async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const refusal = await this.readOnce(signal);
      if (signal.aborted) return;
      if (this.hasEnded) return this.tell({ kind: "ended" });
      if (refusal !== null) return this.tell({ kind: "refused", error: refusal });
      this.tellBreak();
      await this.pause(signal);
    }
  }

  /** Read by the present transport until it ends; return the error of a service that refuses. */
  private async readOnce(signal: AbortSignal): Promise<ApiError | null> {
    const name = this.transport;
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    signal.addEventListener("abort", stop, { once: true });
    let isOpen = false;
    const context: TransportContext = {
      executionId: this.executionId,
      cursor: () => this.seq,
      signal: attempt.signal,
      options: this.options,
      onOpen: () => {
        isOpen = true;
        this.failedOpens = 0;
        this.lastContact = Date.now();
        this.tell({ kind: "live", transport: name });
      },
      onContact: () => {
        this.failures = 0;
        this.lastContact = Date.now();
      },
      onSnapshot: (message) => {
        this.shownSeq = Math.max(this.shownSeq, message.last_seq);
        this.listener.onSnapshot(message);
      },
      onEvents: (events) => this.receive(events, attempt.signal),
    };
    try {
      await READERS[name](context);
    } catch (error) {
      if (signal.aborted) return null;
      if (!(error instanceof ApiError)) throw error;
      if (REFUSALS.has(error.status)) return error;
    } finally {
      signal.removeEventListener("abort", stop);
      attempt.abort();
    }
    // What was open may be so again, and the best one too.
    if (isOpen) this.transport = "websocket";
    else this.fallBack();
    return null;
  }

  private fallBack(): void {
    this.failedOpens += 1;
    if (this.failedOpens < FAILURES_TO_FALL_BACK) return;
    this.failedOpens = 0;
    this.transport = NEXT[this.transport];
  }

  private receive(events: readonly ExecutionEvent[], signal: AbortSignal): boolean {
    if (signal.aborted) return false;
    this.failures = 0;
    this.lastContact = Date.now();
    const wanted: ExecutionEvent[] = [];
    let isGap = false;
    for (const event of events) {
      if (event.seq > this.seq + 1) {
        isGap = true;
        break;
      }
      if (event.seq !== 0 && event.seq <= this.seq) continue;
      wanted.push(event);
      if (event.seq !== 0) this.seq = event.seq;
      if (TERMINAL.has(event.type)) this.hasEnded = true;
    }
    this.shownSeq = Math.max(this.shownSeq, this.seq);
    if (wanted.length > 0) this.listener.onEvents(wanted);
    return !isGap && !this.hasEnded;
  }

  private tellBreak(): void {
    const isLost = Date.now() - this.lastContact >= this.options.lostAfterMs;
    if (isLost) this.tell({ kind: "lost", since: this.lastContact });
    else this.tellConnecting();
  }

  private tellConnecting(): void {
    const seq = this.shownSeq;
    this.tell(seq === 0 ? { kind: "connecting" } : { kind: "reconnecting", seq });
  }

  private tell(state: ConnectionState): void {
    this.listener.onState(state);
  }

  /** Wait before the next attempt: twice as long each time, and not all pages at the same moment. */
  private pause(signal: AbortSignal): Promise<void> {
    const { backoffMs, longestBackoffMs } = this.options;
    const longest = Math.min(backoffMs * 2 ** this.failures, longestBackoffMs);
    this.failures += 1;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, longest * (0.5 + Math.random() / 2));
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (signal.aborted) this.wake();
    });
  }
}

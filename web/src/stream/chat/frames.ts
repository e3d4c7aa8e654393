import { ApiError, pageAddress } from "@/api/http";
import { serverEvents } from "@/api/sse";
import { readJson } from "@/json";
import type { ChatEvent } from "@/stream/chat/replyReducer";
import { refusal } from "@/stream/socket";

/** How a page is connected to a stream of a chat. */
export type FramesState = "connecting" | "live" | "reconnecting" | "ended" | "refused";

export type FramesListener = {
  /** Frames in order. Returns false where nothing more is wanted. */
  readonly onFrames: (frames: readonly ChatEvent[]) => boolean;
  readonly onState: (state: FramesState) => void;
};

export type FramesSource = {
  /** Below the path of the page: `chats/…`. The WebSocket is at `ws/…`, the events at `api/…/events`. */
  readonly path: string;
  /** Return what is known already. */
  readonly after: () => number;
};

const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 10_000;
/** A WebSocket that fails to open so often in a row is given up for server-sent events. */
const FAILURES_TO_FALL_BACK = 2;
const NORMAL = 1000;
/** Frames that end a stream and are none of the chat's. */
const ENDS: ReadonlySet<string> = new Set(["server_draining", "too_slow", "problem"]);
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 403, 404, 422]);

/** Follow a stream of a chat over any break of the connection; returns what stops it. */
export function followFrames(source: FramesSource, listener: FramesListener): () => void {
  const connection = new FramesConnection(source, listener);
  void connection.run();
  return () => connection.stop();
}

class FramesConnection {
  private readonly source: FramesSource;
  private readonly listener: FramesListener;
  private readonly stopping = new AbortController();
  private failures = 0;
  private failedSockets = 0;
  private isWanted = true;

  constructor(source: FramesSource, listener: FramesListener) {
    this.source = source;
    this.listener = listener;
  }

  stop(): void {
    this.stopping.abort();
  }

  async run(): Promise<void> {
    const { signal } = this.stopping;
    this.listener.onState("connecting");
    while (!signal.aborted) {
      const isRefused = await this.readOnce(signal);
      if (signal.aborted) return;
      if (isRefused) return this.listener.onState("refused");
      if (!this.isWanted) return this.listener.onState("ended");
      this.listener.onState("reconnecting");
      await pause(this.failures, signal);
      this.failures += 1;
    }
  }

  /** Read until the connection ends; return whether the service refuses it. */
  private async readOnce(signal: AbortSignal): Promise<boolean> {
    const isSocket = this.failedSockets < FAILURES_TO_FALL_BACK;
    if (isSocket) this.failedSockets += 1;
    const context: Context = {
      source: this.source,
      signal,
      onOpen: () => {
        this.failures = 0;
        if (isSocket) this.failedSockets = 0;
        this.listener.onState("live");
      },
      onFrames: (frames) => {
        this.isWanted = this.listener.onFrames(frames);
        return this.isWanted;
      },
    };
    try {
      await (isSocket ? readSocket : readEvents)(context);
    } catch (error) {
      return error instanceof ApiError && REFUSALS.has(error.status);
    }
    return false;
  }
}

type Context = {
  readonly source: FramesSource;
  readonly signal: AbortSignal;
  readonly onOpen: () => void;
  readonly onFrames: (frames: readonly ChatEvent[]) => boolean;
};

function readSocket({ source, signal, onOpen, onFrames }: Context): Promise<void> {
  return new Promise((resolve, reject) => {
    const address = pageAddress(`ws/${source.path}`);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.searchParams.set("after", String(source.after()));
    const socket = new WebSocket(address);
    const end = (error?: ApiError) => {
      signal.removeEventListener("abort", stop);
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.onerror = () => {}; // one that is closed while it connects reports an error
      socket.close(NORMAL);
      if (error === undefined) resolve();
      else reject(error);
    };
    const stop = () => end();
    signal.addEventListener("abort", stop);
    if (signal.aborted) return end();
    socket.onopen = () => onOpen();
    socket.onerror = () => {}; // a close follows
    socket.onclose = ({ code, reason }) => end(refusal(code, reason));
    socket.onmessage = ({ data }) => {
      const read: ChatEvent | ChatEvent[] = readJson(data);
      const frames = Array.isArray(read) ? read : [read];
      const own = frames.filter(({ event }) => !ENDS.has(event));
      const more = own.length === 0 || onFrames(own);
      if (!more || own.length < frames.length) end();
    };
  });
}

async function readEvents({ source, signal, onOpen, onFrames }: Context): Promise<void> {
  const address = pageAddress(`api/${source.path}/events`);
  address.searchParams.set("after", String(source.after()));
  const response = await fetch(address, { signal, credentials: "same-origin" });
  if (!response.ok) {
    throw new ApiError("refused", "The service refuses the stream.", response.status);
  }
  onOpen();
  for await (const batch of serverEvents(response)) {
    const own = batch.filter(({ event }) => !ENDS.has(event));
    const frames = own.map(({ data }) => readJson(data) as ChatEvent);
    if ((frames.length > 0 && !onFrames(frames)) || own.length < batch.length) return;
  }
}

/** Wait before connecting again: longer each time, and not all pages at the same moment. */
function pause(failures: number, signal: AbortSignal): Promise<void> {
  const longest = Math.min(FIRST_BACKOFF_MS * 2 ** failures, LONGEST_BACKOFF_MS);
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, longest * (0.5 + Math.random() / 2));
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}

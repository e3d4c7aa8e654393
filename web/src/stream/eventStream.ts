import { send } from "@/api/http";
import { serverEvents } from "@/api/sse";
import type { ExecutionEvent } from "@/api/types";
import { readJson } from "@/json";
import type { TransportContext } from "@/stream/connection";

const NOTHING_MORE = 204;
/** Events that end the stream and are none of the execution's. */
const ENDS: ReadonlySet<string> = new Set(["server_draining", "too_slow", "problem"]);

/** Read the events of a run as server-sent events. */
export async function readBySse(context: TransportContext): Promise<void> {
  const { executionId, cursor, signal } = context;
  const response = await send("streamEvents", {
    path: { execution_id: executionId },
    query: { after: cursor() },
    signal,
  });
  context.onOpen();
  if (response.status === NOTHING_MORE) return;
  try {
    for await (const batch of serverEvents(response)) {
      context.onContact();
      const events = batch.filter(({ event }) => !ENDS.has(event));
      const isOpen = context.onEvents(events.map(({ data }) => readJson(data) as ExecutionEvent));
      if (!isOpen || events.length < batch.length) return;
    }
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
    // the connection broke
  }
}

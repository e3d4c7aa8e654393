import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import type { ExecutionEvent, SnapshotMessage } from "@/api/types";

export type Refusal = { status: number; code: string };

/** How a run is served, for tests: over real sockets, as the service does, with faults. */
export type RunServerOptions = {
  readonly events: readonly ExecutionEvent[];
  readonly snapshot: SnapshotMessage;
  /** Events sent together. */
  readonly batch?: number;
  /** Of each connection in turn, the number of batches after which it is cut; then none is. */
  readonly cuts?: readonly number[];
  readonly hasSockets?: boolean;
  readonly hasStreams?: boolean;
  /** Events sent once more, before those that were asked for. */
  readonly repeated?: number;
  /** The first connection leaves this event out. */
  readonly leftOut?: number;
  /** Messages longer than this are sent in parts. */
  readonly partChars?: number;
  readonly refusal?: Refusal;
};

export class RunServer {
  /** The `after` of each connection. */
  readonly asked: string[] = [];
  private readonly options: RunServerOptions;
  private readonly http: Server;
  private readonly sockets = new WebSocketServer({ noServer: true });
  private connections = 0;

  constructor(options: RunServerOptions) {
    this.options = options;
    this.http = createServer((request, response) => this.answer(request, response));
    this.http.on("upgrade", (request, socket: Socket, head) => {
      if (options.hasSockets === false) socket.destroy();
      else this.sockets.handleUpgrade(request, socket, head, (to) => this.serve(request, to));
    });
  }

  /** Listen on loopback and return the address of the page. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.http.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.http.address() as AddressInfo).port}/below/`;
  }

  async close(): Promise<void> {
    for (const client of this.sockets.clients) client.terminate();
    this.http.closeAllConnections();
    await new Promise((resolve) => this.http.close(resolve));
  }

  get openSockets(): number {
    return this.sockets.clients.size;
  }

  private serve(request: IncomingMessage, client: WebSocket): void {
    const { refusal, snapshot, cuts = [] } = this.options;
    if (refusal) {
      client.close(4000 + refusal.status, `${refusal.code}: refused`);
      return;
    }
    const [after, connection] = this.opened(request);
    this.sendMessage(client, snapshot);
    for (const [index, batch] of this.batches(after, connection).entries()) {
      if (cuts[connection] === index) break;
      this.sendMessage(client, batch);
    }
    if (cuts[connection] === undefined) client.close(1000);
    else request.socket.destroySoon();
  }

  private sendMessage(client: WebSocket, message: unknown): void {
    const text = JSON.stringify(message);
    const { partChars = text.length } = this.options;
    if (text.length <= partChars) {
      client.send(text);
      return;
    }
    const of = Math.ceil(text.length / partChars);
    for (let part = 1; part <= of; part++) {
      const piece = text.slice((part - 1) * partChars, part * partChars);
      client.send(JSON.stringify({ type: "part", part, of, text: piece }));
    }
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const { refusal, hasStreams = true } = this.options;
    const query = new URL(request.url ?? "", "http://x").searchParams;
    if (refusal) {
      response.writeHead(refusal.status, { "Content-Type": "application/problem+json" });
      response.end(JSON.stringify({ ...refusal, detail: "refused" }));
    } else if (query.get("format") === "json") this.answerStored(request, response);
    else if (hasStreams) this.stream(request, response);
    else request.socket.destroy();
  }

  private stream(request: IncomingMessage, response: ServerResponse): void {
    const { cuts = [] } = this.options;
    const [after, connection] = this.opened(request);
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    for (const [index, batch] of this.batches(after, connection).entries()) {
      if (cuts[connection] === index) break;
      response.write(`: ping\n\n${batch.map(asServerEvent).join("")}`);
    }
    if (cuts[connection] === undefined) response.end();
    else request.socket.destroySoon();
  }

  private answerStored(request: IncomingMessage, response: ServerResponse): void {
    const [after] = this.opened(request);
    const stored = this.options.events.filter((event) => event.seq > after);
    const events = stored.slice(0, this.options.batch);
    response.end(JSON.stringify({ events, last_seq: events.at(-1)?.seq ?? after }));
  }

  private opened(request: IncomingMessage): [after: number, connection: number] {
    const after = new URL(request.url ?? "", "http://x").searchParams.get("after") ?? "";
    this.asked.push(after);
    return [Number(after), this.connections++];
  }

  private batches(after: number, connection: number): ExecutionEvent[][] {
    const { events, batch = 1, repeated = 0, leftOut } = this.options;
    const wanted = eventsAfter(events, after - repeated).filter(
      (event) => connection > 0 || event.seq === 0 || event.seq !== leftOut,
    );
    return Array.from({ length: Math.ceil(wanted.length / batch) }, (_, index) =>
      wanted.slice(index * batch, (index + 1) * batch),
    );
  }
}

/** Return the messages after a cursor, with the whole text of nodes that were streaming then. */
function eventsAfter(events: readonly ExecutionEvent[], after: number): ExecutionEvent[] {
  const next = events.findIndex((event) => event.seq > after);
  if (next < 0) return [];
  const texts = events.slice(0, next).filter((event) => event.type === "node.delta");
  return [...texts, ...events.slice(next)];
}

function asServerEvent(event: ExecutionEvent): string {
  const id = event.seq === 0 ? "" : `id: ${event.seq}\n`;
  return `${id}event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

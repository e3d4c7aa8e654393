/** One server-sent event. */
export type ServerEvent = { event: string; data: string; id: string | null };

/** Yield the events of a response as they come; comments are left out. */
export async function* serverEvents(response: Response): AsyncGenerator<ServerEvent[]> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      // A chunk may end between the two characters of one line end.
      const text = rest + read.value;
      const whole = text.endsWith("\r") ? text.slice(0, -1) : text;
      const blocks = whole.replaceAll("\r\n", "\n").split("\n\n");
      rest = `${blocks.pop() ?? ""}${text.slice(whole.length)}`;
      const events = blocks.flatMap((block) => parsed(block) ?? []);
      if (events.length > 0) yield events;
    }
  } finally {
    await reader.cancel().catch(() => {}); // it may have broken
  }
}

function parsed(block: string): ServerEvent | null {
  let event = "message";
  let id: string | null = null;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
    else if (field === "id") id = value;
  }
  return data.length === 0 ? null : { event, data: data.join("\n"), id };
}

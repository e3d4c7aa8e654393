import type { DiagramAnswer, DiagramRequest } from "@/diagram/messages";

/** Draws a diagram of Mermaid in the frame for diagrams, which is made for the first one.
 *
 * @returns SVG; null where the text cannot be drawn. */
export async function drawDiagram(code: string, isDark: boolean): Promise<string | null> {
  frame ??= openFrame();
  const opened = await frame;
  const { fontFamily } = getComputedStyle(document.body);
  return await new Promise((resolve) => {
    count += 1;
    waiting.set(count, resolve);
    const request: DiagramRequest = { id: count, code, isDark, fontFamily };
    opened.postMessage(request, window.location.origin);
  });
}

const waiting = new Map<number, (svg: string | null) => void>();
let count = 0;
let frame: Promise<Window> | null = null;

function openFrame(): Promise<Window> {
  const element = document.createElement("iframe");
  element.src = "diagram.html";
  element.title = "Diagrams";
  element.tabIndex = -1;
  element.ariaHidden = "true";
  // What is not displayed has no size, and words could not be measured.
  Object.assign(element.style, {
    position: "absolute",
    top: "0",
    width: "1px",
    height: "1px",
    border: "0",
    visibility: "hidden",
  });
  document.body.append(element);
  return new Promise((resolve) => {
    window.addEventListener("message", ({ source, data }: MessageEvent<DiagramAnswer>) => {
      if (source === null || source !== element.contentWindow) return;
      if (data === "ready") resolve(element.contentWindow);
      else {
        waiting.get(data.id)?.(data.svg);
        waiting.delete(data.id);
      }
    });
  });
}

/* Mermaid sets styles in ways that the policy of the page forbids. So it draws in a frame of its own, whose policy
 * allows them, and forbids to load anything. */
import mermaid from "mermaid";
import type { DiagramAnswer, DiagramRequest } from "@/diagram/messages";

function answer(message: DiagramAnswer): void {
  window.parent.postMessage(message, window.location.origin);
}

async function draw({ id, code, isDark, fontFamily }: DiagramRequest): Promise<void> {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    suppressErrorRendering: true,
    theme: isDark ? "dark" : "neutral",
    fontFamily,
    // What the text of a diagram may not set.
    secure: [
      "secure",
      "securityLevel",
      "startOnLoad",
      "maxTextSize",
      "maxEdges",
      "suppressErrorRendering",
      "htmlLabels",
      "flowchart",
      "fontFamily",
      "themeCSS",
    ],
  });
  try {
    answer({ id, svg: (await mermaid.render(`diagram-${id}`, code)).svg });
  } catch {
    answer({ id, svg: null }); // it is still being written, or is no Mermaid
  }
}

window.addEventListener("message", ({ source, origin, data }) => {
  if (source === window.parent && origin === window.location.origin) void draw(data);
});
answer("ready");

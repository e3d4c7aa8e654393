import { send } from "@/api/http";
import { showError } from "@/api/showError";
import { writeJson } from "@/json";
import { copyText } from "@/ui/copyText";
import { saveJsonFile } from "@/ui/saveFile";
import type { PlanContent } from "./operations";

/** Has the browser keep a plan as a JSON file. */
export function downloadPlan({ title, graph }: PlanContent): void {
  saveJsonFile(writeJson({ title, ...graph }, 2), title);
}

/** Copies the picture of a plan as it is in the editor, for a README or a pull request. */
export async function copyAsMermaid({ title, graph }: PlanContent): Promise<void> {
  try {
    const response = await send("exportGraph", { body: { to: "mermaid", title, graph } });
    await copyText(await response.text(), "as Mermaid");
  } catch (error) {
    showError(error);
  }
}

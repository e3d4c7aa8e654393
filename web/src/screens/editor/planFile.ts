import { send } from "@/api/http";
import { showError } from "@/api/showError";
import { readJson, writeJson } from "@/json";
import { copyText } from "@/ui/copyText";
import { saveJsonFile } from "@/ui/saveFile";
import type { PlanContent } from "./operations";
import { type ReadPlan, readPlan } from "./readPlan";

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

/** Lets a person choose a file, and reads the plan in it; null if none is chosen. */
export async function choosePlanFile(): Promise<ReadPlan | null> {
  const file = await chooseFile();
  if (!file) return null;
  try {
    return readPlan(readJson(await file.text()));
  } catch (fault) {
    return { problem: `It is not JSON: ${fault instanceof Error ? fault.message : fault}` };
  }
}

function chooseFile(): Promise<File | null> {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = "application/json,.json";
  return new Promise((resolve) => {
    input.onchange = () => resolve(input.files?.[0] ?? null);
    input.oncancel = () => resolve(null);
    input.click();
  });
}

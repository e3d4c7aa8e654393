import { useNavigate } from "react-router";
import { isEnded, retryLabel, titleOf } from "@/api/executionSummary";
import { call } from "@/api/http";
import { useCancel, useRetry } from "@/api/mutations";
import { showError } from "@/api/showError";
import type { ExecutionSummary } from "@/api/types";
import { writeJson } from "@/json";
import { IconButton } from "@/ui/IconButton";
import { Menu } from "@/ui/Menu";
import { saveJsonFile } from "@/ui/saveFile";

interface RunMenuProps {
  run: ExecutionSummary;
  onLabel: () => void;
  onDelete: () => void;
}

/** What can be done with a run of the list. */
export function RunMenu({ run, onLabel, onDelete }: RunMenuProps) {
  const navigate = useNavigate();
  const retry = useRetry(run.execution_id);
  const cancel = useCancel(run.execution_id);
  const again = () =>
    retry.mutate(
      { start: true },
      { onSuccess: (made) => navigate(`/runs/${made.execution_id}`), onError: showError },
    );
  return (
    <Menu
      trigger={<IconButton icon="more" label={`More for ${titleOf(run)}`} small />}
      items={[
        { label: "Open", icon: "right", onSelect: () => navigate(`/runs/${run.execution_id}`) },
        { label: "Name, tags and note", icon: "edit", onSelect: onLabel },
        {
          label: "Load the plan into the editor",
          icon: "edit",
          disabledReason: run.plan_id ? undefined : "It has no plan",
          onSelect: () => navigate(`/plans/${run.plan_id}`),
        },
        {
          label: "Stored JSON",
          icon: "download",
          onSelect: () => void saveDocument(run).catch(showError),
        },
        {
          label: retryLabel(run.status),
          icon: "retry",
          disabledReason: retryObstacle(run),
          onSelect: again,
        },
        "line",
        {
          label: "Cancel the run",
          icon: "stop",
          danger: true,
          disabledReason: isEnded(run) ? "It has ended" : undefined,
          onSelect: () => cancel.mutate({}, { onError: showError }),
        },
        {
          label: "Delete",
          icon: "trash",
          danger: true,
          disabledReason: isEnded(run) ? undefined : "It has not ended",
          onSelect: onDelete,
        },
      ]}
    />
  );
}

function retryObstacle(run: ExecutionSummary): string | undefined {
  if (!isEnded(run)) return "It has not ended";
  return run.status === "completed" ? "Nothing failed" : undefined;
}

async function saveDocument(run: ExecutionSummary): Promise<void> {
  const document = await call("getDocument", { path: { execution_id: run.execution_id } });
  saveJsonFile(writeJson(document, 2), titleOf(run));
}

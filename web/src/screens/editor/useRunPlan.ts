import { useState } from "react";
import { useNavigate } from "react-router";
import { errorText } from "@/api/errorText";
import { useExecute } from "@/api/mutations";
import type { RunOptions } from "@/screens/goal/goalDraft";
import { showToast } from "@/ui/toasts";

/** Saves a plan, runs it and leads to its run.
 *
 * @param blocked Why it cannot run, if so. */
export function useRunPlan(
  planId: string,
  flush: () => Promise<boolean>,
  blocked: string | undefined,
) {
  const [options, setOptions] = useState<RunOptions>({});
  const [needsApproval, setNeedsApproval] = useState(false);
  const [isSaving, setSaving] = useState(false);
  const execute = useExecute();
  const navigate = useNavigate();
  const isStarting = isSaving || execute.isPending;
  const fail = (text: string) => showToast({ kind: "error", text });
  const start = async () => {
    if (isStarting) return;
    if (blocked) return fail(`${blocked}.`);
    setSaving(true);
    const isSaved = await flush();
    setSaving(false);
    if (!isSaved) return fail("Not started: your last changes are not saved yet.");
    execute.mutate(
      { plan_id: planId, start: true, require_approval: needsApproval, options },
      {
        onSuccess: (made) => navigate(`/runs/${made.execution_id}`),
        onError: (error) => fail(errorText(error)),
      },
    );
  };
  return {
    start: () => void start(),
    isStarting,
    needsApproval,
    setNeedsApproval,
    options,
    setOptions,
  };
}

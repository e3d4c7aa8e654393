import { useState } from "react";
import { useSearchParams } from "react-router";
import { useStore } from "zustand";
import { useEditPlan, useRestoreRevision } from "@/api/mutations";
import { showError } from "@/api/showError";
import type { PlanResponse } from "@/api/types";
import { MakeInputButton } from "@/screens/flows/MakeInput";
import { goalOf } from "@/screens/flows/planWords";
import { Button } from "@/ui/Button";
import { Note } from "@/ui/Note";
import { Tag } from "@/ui/Tag";
import { showToast } from "@/ui/toasts";
import { createEditorStore, type EditorStore } from "./editorStore";
import { GoalBar } from "./GoalBar";
import { GraphEditor, useGraphCheck } from "./GraphEditor";
import { ImportPlan } from "./ImportPlan";
import { LastRun } from "./LastRun";
import { PlanActions, PlanTitle } from "./PlanHeader";
import { copyAsMermaid, downloadPlan } from "./planFile";
import { RefinePlan } from "./RefinePlan";
import { RevisionBar } from "./RevisionBar";
import { RunChanged } from "./RunChanged";
import { SaveAsFlow } from "./SaveAsFlow";
import { type Autosave, savedPlan, useAutosave } from "./useAutosave";
import { useComparison } from "./useComparison";
import { useRunPlan } from "./useRunPlan";
import { WaitingRun } from "./WaitingRun";

/** A plan, to be changed: every change is saved a moment later, as a new revision. */
export function PlanEditor({ plan }: { plan: PlanResponse }) {
  const [store] = useState(() => createEditorStore(savedPlan(plan)));
  const { content, saved } = useStore(store);
  const [isSavingFlow, setSavingFlow] = useState(false);
  const [isImporting, setImporting] = useState(false);
  const goal = goalOf(plan);
  const autosave = useAutosave(plan, store);
  const { check, errors, isDraft } = useGraphCheck(store, goal);
  const blocked = errors && `Fix ${errors} to run`;
  const run = useRunPlan(plan.plan_id, autosave.flush, blocked);
  const ran = Number(useSearchParams()[0].get("ran"));
  const comparison = useComparison(plan.plan_id, saved.revision, ran || null);
  const changes = useWholeChanges(plan.plan_id, store, autosave);
  const inputOf = (words: string) => (
    <MakeInputButton
      {...{ words, planId: plan.plan_id, flush: autosave.flush }}
      onMade={(name) => showToast({ text: `“${name}” is an input of the flow now.` })}
    />
  );
  return (
    <>
      <GraphEditor
        store={store}
        check={check}
        comparison={comparison}
        onEnter={{ does: "Run the plan", run: run.start }}
        onRename={changes.rename}
        onWords={inputOf}
        lastRun={(id) => (
          <LastRun
            {...{ id, planId: plan.plan_id, graph: content.graph, flush: autosave.flush }}
            onSelect={store.select}
          />
        )}
        title={
          <>
            {isDraft && <Tag>Draft</Tag>}
            <PlanTitle title={content.title} onTitle={store.changeTitle} />
          </>
        }
        actions={
          <PlanActions
            blocked={blocked}
            run={run}
            flow={plan.name === null ? null : { id: plan.plan_id, name: plan.name }}
            onSaveAsFlow={() => setSavingFlow(true)}
            onExport={() => downloadPlan(store.getState().content)}
            onCopyAsMermaid={() => void copyAsMermaid(store.getState().content)}
            onImport={() => setImporting(true)}
          />
        }
      >
        <RevisionBar
          planId={plan.plan_id}
          revision={saved.revision}
          save={autosave.state}
          comparison={comparison}
          onRestore={changes.restore}
        />
        {goal !== "" && <GoalBar goal={goal} onWords={inputOf} />}
        <RefinePlan plan={plan} saved={saved} autosave={autosave} />
        <WaitingRun
          planId={plan.plan_id}
          store={store}
          saved={saved}
          blocked={blocked}
          flush={autosave.flush}
        />
        {!(blocked || run.needsApproval) && (
          <RunChanged
            {...{ planId: plan.plan_id, goal, store, saved }}
            options={run.options}
            flush={autosave.flush}
          />
        )}
        {ran > 0 && ran < saved.revision && (
          <Note>
            The run used revision {ran}; this is revision {saved.revision}, which is newer.{" "}
            <Button small onClick={() => changes.restore(ran)}>
              Restore {ran}
            </Button>
          </Note>
        )}
        {plan.name !== null && isDraft && (
          <Note kind="warning">
            This is a draft. Whoever calls the flow starts{" "}
            {plan.live_revision === null ? "nothing" : `revision ${plan.live_revision}`} until it
            has no errors.
          </Note>
        )}
      </GraphEditor>
      {isSavingFlow && (
        <SaveAsFlow
          planId={plan.plan_id}
          title={content.title}
          flush={autosave.flush}
          onClose={() => setSavingFlow(false)}
        />
      )}
      {isImporting && <ImportPlan store={store} onClose={() => setImporting(false)} />}
    </>
  );
}

/** Changes that the service makes of the whole plan: a new id of a step, an earlier revision. */
function useWholeChanges(planId: string, store: EditorStore, { changeBy }: Autosave) {
  const edit = useEditPlan(planId);
  const restoring = useRestoreRevision(planId);
  const rename = async (id: string, to: string) => {
    const operations = [{ op: "rename", id, to } as const];
    try {
      await changeBy((hash) => edit.mutateAsync({ hash, body: { operations, author: "person" } }));
      store.select([to]);
    } catch (error) {
      showError(error);
    }
  };
  const restore = (revision: number) =>
    void changeBy((hash) => restoring.mutateAsync({ hash, revision })).catch(showError);
  return { rename, restore };
}

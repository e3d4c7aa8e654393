import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useRefinePlan } from "@/api/mutations";
import { showError } from "@/api/showError";
import type { GraphDocument, PlanResponse, ProposalDocument } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { useGoalDraft } from "@/screens/goal/goalDraft";
import { Button } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { showToast } from "@/ui/toasts";
import type { SavedPlan } from "./editorStore";
import styles from "./RefinePlan.module.css";
import { DiffTags } from "./RevisionBar";
import { Differences, Reach } from "./RevisionDiff";
import type { Autosave } from "./useAutosave";

type RefinePlanProps = {
  plan: PlanResponse;
  /** The plan as the editor last saved it. */
  saved: SavedPlan;
  autosave: Pick<Autosave, "flush" | "changeBy">;
};

/** Has a model write a change of the plan, and shows it: the plan stays as it is until a person takes the change. */
export function RefinePlan({ plan, saved, autosave }: RefinePlanProps) {
  const [words, setWords] = useState("");
  const [put, putAside] = useState<string | null>(null);
  const refine = useRefinePlan(plan.plan_id);
  const { provider, model } = useGoalDraft();
  const ask = useMutation({
    mutationFn: async () => {
      if (!(await autosave.flush())) throw new Error("Your last changes are not saved yet.");
      putAside(null);
      await refine.mutateAsync({ body: { request: words.trim(), provider, model } });
    },
    onSuccess: () => setWords(""),
  });
  const take = useMutation({
    mutationFn: ({ hash: accept }: ProposalDocument) =>
      autosave.changeBy((hash) => refine.mutateAsync({ hash, body: { accept, author: "person" } })),
    onSuccess: () => showToast({ text: "The plan was changed. Undo takes it back." }),
    onError: showError,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (words.trim() !== "" && !ask.isPending) ask.mutate();
  };
  const { proposal } = plan;
  const isOpen = proposal?.base === saved.hash && proposal.hash !== put && !ask.isPending;
  return (
    <section className={styles.change} aria-label="Change in words">
      <form className={styles.ask} onSubmit={submit}>
        <TextField
          label="Change in words"
          hiddenLabel
          placeholder="Change in words: add a step that checks the prices"
          autoComplete="off"
          required
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
        <Button type="submit" icon="model" disabledReason={ask.isPending ? "Writing …" : undefined}>
          Propose
        </Button>
      </form>
      {ask.isPending && (
        <p role="status">A model writes the change. The plan stays as it is meanwhile.</p>
      )}
      {ask.error && <ErrorNote error={ask.error} />}
      {isOpen && (
        <Proposal
          proposal={proposal}
          graph={saved.graph}
          isTaking={take.isPending}
          onTake={() => take.mutate(proposal)}
          onClose={() => putAside(proposal.hash)}
        />
      )}
    </section>
  );
}

type ProposalProps = {
  proposal: ProposalDocument;
  graph: GraphDocument;
  isTaking: boolean;
  onTake: () => void;
  onClose: () => void;
};

/** What a model would change: its sentence, every step and field, and all that the plan would reach by it. */
function Proposal({ proposal, graph, isTaking, onTake, onClose }: ProposalProps) {
  const { answer, request, difference, additions, model } = proposal;
  const lost = additions.filter(({ kind }) => kind === "safeguard");
  const reached = additions.filter(({ kind }) => kind !== "safeguard");
  return (
    <section className={styles.proposal} aria-label="Proposed change" aria-live="polite">
      <header>
        <h2 dir="auto">{answer || request}</h2>
        <p className={styles.facts}>
          <DiffTags diff={difference} />
          <span dir="auto" title={request}>
            {`“${request}”, by ${model}`}
          </span>
        </p>
      </header>
      <div className={styles.differences}>
        <Differences diff={difference} graph={graph} isWhole />
      </div>
      <Reach words="It would do or reach what the plan does not yet:" additions={reached} />
      <Reach words="It would lose what guards the plan:" additions={lost} />
      <div className={styles.buttons}>
        <Button icon="tick" onClick={onTake} disabledReason={isTaking ? "Taking it …" : undefined}>
          Take the change
        </Button>
        <Button kind="quiet" onClick={onClose}>
          Not now
        </Button>
      </div>
    </section>
  );
}

import { useState } from "react";
import { useNavigate } from "react-router";
import { call } from "@/api/http";
import { useCreateFlow, useEditPlan } from "@/api/mutations";
import type { PlanResponse } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { operationsBetween } from "@/screens/editor/operations";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { TextField } from "@/ui/Field";
import { Note } from "@/ui/Note";
import { Checkbox } from "@/ui/Switch";
import styles from "./FlowScreen.module.css";
import { inputNames, nameFor, nameProblem, placesOf, withInput } from "./makeInput";
import { goalOf } from "./planWords";

type MakeInputProps = {
  plan: PlanResponse;
  /** The words that were selected; with none they are typed. */
  selected: string;
  onClose: () => void;
  /** It is made; without it, the flow is opened. */
  onMade?: ((name: string) => void) | undefined;
};

/** Makes words of a goal and of tasks an input of the flow, and a plan without a name a flow. */
export function MakeInput({ plan, selected, onClose, onMade }: MakeInputProps) {
  const goal = goalOf(plan);
  const graph = { nodes: plan.nodes, edges: plan.edges };
  const taken = inputNames(graph);
  const [words, setWords] = useState(selected.trim());
  const [ownName, setName] = useState<string | null>(null);
  const [flowName, setFlowName] = useState(plan.title);
  const [left, setLeft] = useState<ReadonlySet<string | null>>(new Set());
  const places = placesOf({ goal, graph }, words);
  const name = ownName ?? nameFor(words, places[0]?.text ?? "", taken);
  const chosen = places.filter(({ node }) => !left.has(node)).map(({ node }) => node);
  const edit = useEditPlan(plan.plan_id);
  const create = useCreateFlow();
  const navigate = useNavigate();
  const error = edit.error ?? create.error;
  const nameError = words === "" ? undefined : nameProblem(name, taken);
  const isPending = edit.isPending || create.isPending;

  const make = async () => {
    const made = withInput({ goal, graph }, { words, name, places: chosen });
    const operations = operationsBetween(
      { title: plan.title, graph },
      { title: plan.title, graph: made.graph },
    );
    // It is an input already where only the name of the flow was refused.
    if (!edit.isSuccess) {
      await edit.mutateAsync({
        hash: plan.hash,
        body: {
          author: "person",
          note: `${words} is the input ${name}`,
          operations: [{ op: "set_goal", goal: made.goal }, ...operations],
        },
      });
    }
    if (plan.name === null) await create.mutateAsync({ name: flowName, plan_id: plan.plan_id });
    if (onMade) onMade(name);
    else navigate(`/flows/${plan.plan_id}`);
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="Make it an input"
      description="Each run of the flow can then have other words here; these stay the usual ones."
      footer={
        <Button
          kind="primary"
          onClick={() => void make().catch(() => undefined)}
          disabledReason={whyNot(words, chosen.length, nameError, isPending)}
        >
          {plan.name === null ? "Make it an input of a flow" : "Make it an input"}
        </Button>
      }
    >
      <div className={styles.form}>
        <TextField
          label="Words"
          value={words}
          onChange={(event) => setWords(event.target.value)}
          error={
            words !== "" && places.length === 0 ? "Neither goal nor tasks have them." : undefined
          }
        />
        <TextField
          label="Name of the input"
          value={name}
          error={nameError}
          onChange={(event) => setName(event.target.value)}
        />
        {places.length > 0 && (
          <fieldset className={styles.fields}>
            <legend>Where they stand</legend>
            {places.map(({ node, label, count }) => (
              <p key={node ?? ""}>
                <Checkbox
                  label={count === 1 ? label : `${label}, ${count} times`}
                  checked={!left.has(node)}
                  onChange={(isChosen) =>
                    setLeft((now) =>
                      isChosen
                        ? new Set([...now].filter((each) => each !== node))
                        : new Set([...now, node]),
                    )
                  }
                />
              </p>
            ))}
          </fieldset>
        )}
        {plan.name === null && (
          <TextField
            label="Name of the flow"
            hint="A flow is a plan under a name, to be run again with other inputs."
            value={flowName}
            onChange={(event) => setFlowName(event.target.value)}
          />
        )}
        {error && <ErrorNote error={error} />}
      </div>
    </Dialog>
  );
}

function whyNot(
  words: string,
  chosen: number,
  nameError: string | undefined,
  isPending: boolean,
): string | undefined {
  if (words === "") return "Say which words";
  if (chosen === 0) return "Choose where they stand";
  return nameError ?? (isPending ? "Saving …" : undefined);
}

type MakeInputButtonProps = Pick<MakeInputProps, "onMade"> & {
  planId: string;
  words: string;
  /** Saves what was changed before the plan is read; returns whether that succeeded. */
  flush?: () => Promise<boolean>;
};

/** Offers to make selected words an input; the plan is read when that is wanted. */
export function MakeInputButton({ planId, words, flush, onMade }: MakeInputButtonProps) {
  const [plan, setPlan] = useState<PlanResponse | null>(null);
  const [error, setError] = useState<unknown>(null);
  const open = async () => {
    try {
      setError(null);
      if (flush && !(await flush())) return;
      setPlan(await call("getPlan", { path: { plan_id: planId } }));
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <>
      <Button small icon="edit" onClick={() => void open()}>
        {words ? `Make “${shorten(words)}” an input` : "Make words an input"}
      </Button>
      {error !== null && <Note kind="error">The plan of this run is gone.</Note>}
      {plan && (
        <MakeInput
          plan={plan}
          selected={words}
          onClose={() => setPlan(null)}
          onMade={
            onMade &&
            ((name) => {
              setPlan(null);
              onMade(name);
            })
          }
        />
      )}
    </>
  );
}

function shorten(words: string): string {
  return words.length > 24 ? `${words.slice(0, 23)}…` : words;
}

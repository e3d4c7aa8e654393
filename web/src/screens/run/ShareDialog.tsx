import { useState } from "react";
import { useCreateLink, useRevokeLink } from "@/api/mutations";
import { useLinks } from "@/api/queries";
import { showError } from "@/api/showError";
import type { LinkResponse } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { copyText } from "@/ui/copyText";
import { Dialog } from "@/ui/Dialog";
import { SelectField, TextField } from "@/ui/Field";
import { formatInstant } from "@/ui/format";
import { IconButton } from "@/ui/IconButton";
import { Segmented } from "@/ui/Segmented";
import styles from "./ShareDialog.module.css";

type ShareDialogProps = { executionId: string; open: boolean; onClose: () => void };

const SHOWN = {
  result: "The result, and nothing else: no goal, no prompts, no other runs.",
  run: "The result, and what each step delivered. No goal, no prompts, no other runs.",
};
type Shown = keyof typeof SHOWN;

const DAYS = [1, 7, 30] as const;
const DAY_S = 86_400;

/** Makes links that show a run to people who have no access, and takes them back. */
export function ShareDialog({ executionId, open, onClose }: ShareDialogProps) {
  const create = useCreateLink(executionId);
  const close = () => {
    create.reset();
    onClose();
  };
  return (
    <Dialog
      open={open}
      onClose={close}
      title="Share"
      description="Whoever has a link can read it without logging in."
    >
      <NewLink create={create} />
      {open && <Links executionId={executionId} />}
    </Dialog>
  );
}

function NewLink({ create }: { create: ReturnType<typeof useCreateLink> }) {
  const [kind, setKind] = useState<Shown>("result");
  const [days, setDays] = useState(7);
  const made = create.data;
  return (
    <>
      <Segmented
        label="What the link shows"
        value={kind}
        options={[
          { value: "result", label: "Result" },
          { value: "run", label: "Result and steps" },
        ]}
        onChange={setKind}
      />
      <p className={styles.shown}>{SHOWN[kind]}</p>
      <div className={styles.row}>
        <SelectField
          label="Valid for"
          value={days}
          onChange={(event) => setDays(Number(event.target.value))}
        >
          {DAYS.map((each) => (
            <option key={each} value={each}>
              {each === 1 ? "1 day" : `${each} days`}
            </option>
          ))}
        </SelectField>
        <Button
          kind="primary"
          icon="link"
          onClick={() => create.mutate({ kind, expires_in_s: days * DAY_S })}
          disabledReason={create.isPending ? "Making the link …" : undefined}
        >
          Make a link
        </Button>
      </div>
      {create.error && <ErrorNote error={create.error} />}
      {made && (
        <div className={styles.row}>
          <TextField
            label="The new link"
            hint="It is shown only now."
            readOnly
            value={made.url}
            onFocus={(event) => event.target.select()}
          />
          <Button icon="copy" onClick={() => void copyText(made.url, "the link")}>
            Copy
          </Button>
        </div>
      )}
    </>
  );
}

function Links({ executionId }: { executionId: string }) {
  const { data, error } = useLinks(executionId);
  const revoke = useRevokeLink(executionId);
  if (error) return <ErrorNote error={error} />;
  if (!data || data.links.length === 0) return null;
  return (
    <section className={styles.links}>
      <h3>Links to this run</h3>
      <ul>
        {data.links.map((link) => (
          <li key={link.link_id}>
            <span>
              <b>{kindWords(link)}</b> until {formatInstant(new Date(link.expires_at))}
            </span>
            <IconButton
              icon="trash"
              label={`Take back: ${kindWords(link)}`}
              small
              onClick={() => revoke.mutate(link.link_id, { onError: showError })}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}

function kindWords({ kind, target }: LinkResponse): string {
  if (kind === "result") return "Result";
  if (kind === "run") return "Result and steps";
  return target === null ? "One answer" : `One answer, sent to ${target}`;
}

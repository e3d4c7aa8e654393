import styles from "@/app/ShortcutHelp.module.css";
import { Dialog } from "@/ui/Dialog";
import { usePreferences } from "@/ui/preferences";
import { Switch } from "@/ui/Switch";
import { listedGroups, printedKeys, useShortcutGroups } from "@/ui/shortcuts";

function Keys({ keys }: { keys: string }) {
  return (
    <>
      {printedKeys(keys).map((chord, index) => (
        <span key={chord.join(" ")}>
          {index > 0 && <span className={styles.then}> then </span>}
          {chord.map((key) => (
            <kbd key={key} className={styles.key}>
              {key}
            </kbd>
          ))}
        </span>
      ))}
    </>
  );
}

/** The keys that work on this page. */
export function ShortcutHelp({ open, onClose }: { open: boolean; onClose: () => void }) {
  const groups = useShortcutGroups((state) => state.groups);
  const { singleKeys, setSingleKeys } = usePreferences();
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Keys"
      description="Letters and signs work while no field has the focus."
      footer={<Switch label="Single letters" checked={singleKeys} onChange={setSingleKeys} />}
    >
      <div className={styles.groups}>
        {listedGroups(groups).map(({ name, shortcuts }) => (
          <section key={name} aria-label={name}>
            <h3 className={styles.name}>{name}</h3>
            <dl className={styles.list}>
              {shortcuts.map(({ keys, does }) => (
                <div key={keys} className={styles.row}>
                  <dt>{does}</dt>
                  <dd>
                    <Keys keys={keys} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}

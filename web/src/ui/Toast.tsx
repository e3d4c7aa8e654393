import { Toast as Radix } from "radix-ui";
import { create } from "zustand";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { Icon } from "@/ui/icons";
import styles from "@/ui/Toast.module.css";

interface ToastContent {
  text: string;
  kind?: "plain" | "error";
  /** The next step, such as Undo. */
  action?: { label: string; onSelect: () => void };
}

interface Toasts {
  shown: (ToastContent & { id: number })[];
  add: (toast: ToastContent) => void;
  remove: (id: number) => void;
}

let lastId = 0;

const useToasts = create<Toasts>((set) => ({
  shown: [],
  add: (toast) =>
    set(({ shown }) => {
      lastId += 1;
      return { shown: [...shown.slice(-2), { ...toast, id: lastId }] };
    }),
  remove: (id) => set(({ shown }) => ({ shown: shown.filter((toast) => toast.id !== id) })),
}));

/** Says a sentence at the edge of the page for a few seconds; an error stays until it is closed. */
export function showToast(toast: ToastContent): void {
  useToasts.getState().add(toast);
}

/** Where toasts appear; once a page. */
export function Toaster() {
  const { shown, remove } = useToasts();
  return (
    <Radix.Provider swipeDirection="right" duration={6000} label="Message">
      {shown.map(({ id, text, kind = "plain", action }) => (
        <Radix.Root
          key={id}
          className={styles.toast}
          duration={kind === "error" ? Number.POSITIVE_INFINITY : 6000}
          onOpenChange={(open) => !open && remove(id)}
        >
          <span className={styles[kind]}>
            <Icon name={kind === "error" ? "error" : "info"} />
          </span>
          <Radix.Description className={styles.text}>{text}</Radix.Description>
          {action && (
            <Radix.Action asChild altText={action.label}>
              <Button small onClick={action.onSelect}>
                {action.label}
              </Button>
            </Radix.Action>
          )}
          <Radix.Close asChild>
            <IconButton icon="close" label="Close this message" small />
          </Radix.Close>
        </Radix.Root>
      ))}
      <Radix.Viewport className={styles.place} />
    </Radix.Provider>
  );
}

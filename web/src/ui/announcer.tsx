import { create } from "zustand";

const useAnnouncement = create(() => ({ text: "", turn: 0 }));

/** Says a sentence to screen readers once they are done speaking. Never call it for each token. */
export function announce(text: string): void {
  useAnnouncement.setState(({ turn }) => ({ text, turn: turn + 1 }));
}

/** Where announcements are read out from; once a page. */
export function LiveRegion() {
  const { text, turn } = useAnnouncement();
  return (
    <div className="visually-hidden" aria-live="polite" aria-atomic="true">
      <span key={turn}>{text}</span>
    </div>
  );
}

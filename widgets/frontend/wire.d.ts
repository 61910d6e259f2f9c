// What Python sends to the front end.  Written by `python -m tools.generated wire`.
export type BreakRow = { id: string; place: string; code: string; outcome: string; outcome_text: string; type: string; hits: number; allowed: boolean; target: string; cost?: string };
export type CallRow = { id: string; place: string; owner: string; ids: string[]; depth: number; name: string; events: string[][]; part: number; eager: number; folded: boolean };
export type CausePlace = { id: string; place: string; owner: string; ids: string[]; code: string; function: string; times: number };
export type CauseRow = { id: string; kind: string; count: string; title: string; fix: string; cost: string; eager: string[]; places: CausePlace[] };
export type CheckPart = { agrees: boolean | null; lines: string[]; id: string; searchable: boolean; issue: string };
export type Chip = { text: string; kind: string; id?: string; full?: string };
export type CodeBody = { text: string; lang: string; start?: number };
export type CompileTimeLine = { title: string; total: string; shares: Share[]; rows: PhaseRow[]; words: string[] };
export type Detail = { kind: string; title: string; code: string; place: string; copy: string; facts: string[][]; parts: AnyPart[]; links?: string[][]; target?: string; file?: string; line?: number; way?: Way };
export type Drawn = { width: number; height: number; large: boolean; left_out: string; svg: string };
export type ErrorMark = { heat: number; short: string; text: string; first: boolean };
export type FixBody = { chosen: FixRow[]; others: FixRow[]; copies: Record<string, string> };
export type FixRow = { words: string; verdict: "verified" | "conditional" | "refused" | "untried"; gain: string; assumption: string; condition: string; diff: string[] };
export type FxBody = { nodes: FxNode[]; picture: FxPicture };
export type FxFold = { name: string; first: number; count: number; inside?: FxPicture; heat?: number };
export type FxNode = { name: string; op: string; kind: string; target: string; value: string; reads: number[]; full: string; line?: number; file?: string; place?: string; time?: string; heat?: number };
export type FxPicture = { width: number; height: number; first: number; boxes: number[][]; titles: string[]; notes: string[]; joined: number[][]; edges: number[][][]; folds?: FxFold[] };
export type InputRow = { arguments: string; outcome: string; words: string; id: string };
export type Overview = { causes: CauseRow[]; calls: CallRow[]; library: string; measured: boolean };
export type Part<Kind, Body> = { key: string; name: string; kind: Kind; body: Body };
export type PhaseRow = { name: string; kind: string; what: string; own: string; total: string; count: number; where: string; id: string };
export type ProseBody = { text: string[]; todo: string[]; code: string[] };
export type Recommendation = { first: string; id: string; more: string[]; hints: boolean; copies: Record<string, string> };
export type RecompileRow = { id: string; title: string; name: string; place: string; cause: string; full: string; facts: string; refused: boolean };
export type RunBody = { graph: string; text: string[]; ran: boolean; code: string };
export type Share = { name: string; kind: string; part: number; full: string };
export type SourceBody = { file: string; start: number; end: number };
export type SourceFile = { file: string; label: string; lines: SourceLine[]; breaks?: number; graphs?: number; owner?: string };
export type SourceLine = { line: number; text: string; gap?: number; graphs?: number[]; marks?: SourceMark[]; state?: string; reason?: string; id?: string; region?: string[]; error?: ErrorMark };
export type SourceMark = { id: string; start: number; end: number; outcome: string };
export type StackRow = { place: string; function: string; source: string; file: string; line: number };
export type TimeLine = { total: string; call: string; profiled: string; lanes: string[]; segments: TimeSegment[]; shares: Share[]; verdict: string; devices: string; inputs: InputRow[]; inputs_summary: string };
export type TimeSegment = { kind: string; lane: number; x: number; w: number; label: string; full: string; id: string; tone?: number };
export type ViewModel = { headline: string; name: string; counts: string[][]; chips: Chip[]; first: string; advice: Recommendation | null; overview: Overview | null; split: Drawn; sources: SourceFile[]; details: Record<string, Detail>; breaks: BreakRow[]; recompiles: RecompileRow[]; time: TimeLine | null; compile_time: CompileTimeLine | null; notes: string[]; check: CheckPart | null; settings: Record<string, unknown>; fixable: boolean };
export type Way = { file: string; line: number; names: string[] };
export type AnyPart =
  | Part<"prose", ProseBody>
  | Part<"code", CodeBody>
  | Part<"source", SourceBody>
  | Part<"stack", StackRow[]>
  | Part<"graph", FxBody>
  | Part<"list", string[][]>
  | Part<"run", RunBody>
  | Part<"fix", FixBody>;

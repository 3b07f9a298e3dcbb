_NAME() {
    local line=${COMP_LINE:0:COMP_POINT} word keep
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[${#words[@]} - 1]}
    local IFS=$'\013'
    COMPREPLY=($(_CLAP_IFS=$IFS _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) VARIABLE=bash 'PROGRAM' -- "${words[@]}" 2>/dev/null))
    # Of the word, bash replaces what follows the last `=` or `:`.
    keep=${word%"${word##*[=:]}"}
    if [[ -n $keep ]]; then
        local i
        for i in "${!COMPREPLY[@]}"; do
            COMPREPLY[i]=${COMPREPLY[i]#"$keep"}
        done
    fi
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -F _NAME NAME

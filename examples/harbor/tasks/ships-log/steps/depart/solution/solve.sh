echo "departed: $(cat manifest.txt)" >>log.txt
